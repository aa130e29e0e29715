/** The kinds of work that Ksana comes with; plug-ins bring others. */
export const TYPES = ['http', 'shell', 'python'] as const
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const
export const POLICIES = ['PARALLEL', 'QUEUE', 'SKIP'] as const
export const RECOVERIES = ['retry', 'fail'] as const
