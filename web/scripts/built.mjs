// Where the built console is.
import { fileURLToPath } from 'node:url'

export const FOLDER = fileURLToPath(new URL('../../src/ksana/console_assets', import.meta.url))
export const ASSETS = fileURLToPath(new URL('../../src/ksana/console_assets/assets', import.meta.url))
