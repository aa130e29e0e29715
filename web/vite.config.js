import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const ksana = process.env.KSANA_URL ?? 'http://127.0.0.1:7100'

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  resolve: { alias: { '@': new URL('./src', import.meta.url).pathname } },
  build: {
    outDir: '../src/ksana/console_assets',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1500,
    modulePreload: { polyfill: false },
  },
  server: { port: 5173, proxy: { '/api': ksana, '/openapi.json': ksana, '/docs': ksana, '/health': ksana } },
})
