/** Calls (`{method, path, query, body}`, a JSON list on standard input) as the commands that the console shows; null where it shows none. */
import { readFileSync } from 'node:fs'
import { runnerImport } from 'vite'

const file = new URL('../src/api/commands.ts', import.meta.url).pathname
const { module } = await runnerImport(file, { configFile: false, logLevel: 'warn' })
const calls = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify(calls.map((call) => module.commandOf({ query: {}, ...call }, call.server) ?? null)))
