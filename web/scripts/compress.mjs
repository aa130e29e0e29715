// Compresses what was built, once, so that the server only chooses: a brotli and a gzip file beside each hashed one.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { ASSETS } from './built.mjs'

const WORTHWHILE = 1024

for (const name of readdirSync(ASSETS).filter((each) => /\.(js|css|svg|json)$/.test(each))) {
  const content = readFileSync(join(ASSETS, name))
  if (content.length < WORTHWHILE) continue
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  writeFileSync(join(ASSETS, `${name}.br`), brotliCompressSync(content, { params }))
  writeFileSync(join(ASSETS, `${name}.gz`), gzipSync(content, { level: constants.Z_BEST_COMPRESSION }))
}
