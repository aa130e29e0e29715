// Fails where the first load takes more than its budget, or has what only some pages need.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ASSETS, FOLDER } from './built.mjs'

const BUDGET = 400_000
const LATER = ['xyflow', 'dagre', 'uPlot']

const page = readFileSync(join(FOLDER, 'index.html'), 'utf8')
const first = new Set([...page.matchAll(/assets\/([\w.-]+\.(?:js|css))/g)].map((found) => found[1]))
// What the first files import at once is loaded with them.
for (const name of first) {
  if (!name.endsWith('.js')) continue
  const source = readFileSync(join(ASSETS, name), 'utf8')
  for (const found of source.matchAll(/(?:^|[;\s])(?:import|export)\s*(?:[\w*${}\s,]+from\s*)?"\.\/([\w.-]+\.js)"/g)) first.add(found[1])
}
const wire = (name) => statSync(join(ASSETS, existsSync(join(ASSETS, `${name}.gz`)) ? `${name}.gz` : name)).size
const total = [...first].reduce((sum, name) => sum + wire(name), 0)
const early = [...first].filter((name) => name.endsWith('.js') && LATER.some((word) => readFileSync(join(ASSETS, name), 'utf8').includes(`${word}__`)))
console.log(`console: first load ${Math.round(total / 1000)} kB of ${BUDGET / 1000} kB, gzip, ${first.size} files`)
if (total > BUDGET || early.length > 0) {
  console.error(total > BUDGET ? 'The first load is too large.' : `Graphs or charts are in the first load: ${early.join(', ')}`)
  process.exit(1)
}
