// Before the first paint, so that a dark page never flashes white. The rest of the theme comes with the application.
;(function () {
  var kept = null
  try {
    kept = window.localStorage.getItem('mantine-color-scheme-value')
  } catch (error) {
    // storage is forbidden: as the system has it
  }
  var dark = kept === 'dark' || (kept !== 'light' && window.matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light')
  document.documentElement.style.backgroundColor = dark ? '#16181d' : '#f7f8fa'
})()
