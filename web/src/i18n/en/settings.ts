export const settings = {
  title: 'Settings',
  preferences: 'Preferences',
  preferencesHint: 'Kept in this browser, for you alone.',
  now: 'Now it is {now}',
  server: 'Server',
  general: 'general',
  filter: 'Name, value or description',
  onlySet: 'Only what was set',
  source: 'Where it came from',
  unset: 'not set',
  empty: 'No setting matches',
} as const
