import { type MantineColorsTuple, createTheme } from '@mantine/core'

/** The ink of the name's first character: a quiet blue. */
const ink: MantineColorsTuple = ['#eef2fb', '#dae2f3', '#b2c2e6', '#88a0da', '#6583cf', '#4e71c9', '#4268c6', '#3457af', '#2c4d9d', '#1f428b']
/** As grey as the ink allows. */
const dark: MantineColorsTuple = ['#dfe3ea', '#bcc3ce', '#a0a8b5', '#6b7481', '#434955', '#363c47', '#262a32', '#1c1f26', '#16181d', '#101216']

export const theme = createTheme({
  primaryColor: 'ink',
  colors: { ink, dark },
  primaryShade: { light: 7, dark: 6 },
  defaultRadius: 6,
  cursorType: 'pointer',
  fontFamily: 'Inter, -apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: { fontWeight: '620', sizes: { h1: { fontSize: '21px', lineHeight: '1.3' }, h2: { fontSize: '15px', lineHeight: '1.4' }, h3: { fontSize: '13.5px' } } },
  components: {
    Tooltip: { defaultProps: { withArrow: true, openDelay: 250, multiline: true, maw: 420 } },
    Modal: { defaultProps: { centered: true }, styles: { title: { fontWeight: 600 } } },
    Drawer: { styles: { title: { fontWeight: 600 } } },
  },
})
