// The settings of the mutation tester. Paths are relative to the checkout.
export default {
  // Without the tables of log events, which have no conditions.
  mutate: ['src/core/**/*.ts', '!src/core/log/**', 'src/broker/grants/**/*.ts'],
  mutator: {
    // Most texts are messages for people and names of log events: a test of each word would only repeat it.
    excludedMutations: ['StringLiteral'],
  },
  // What runs when a module is loaded belongs to no single test: each such mutant would need all of them.
  ignoreStatic: true,

  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'scripts/mutate.d/vitest.config.ts', related: false, pool: 'forks' },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  // For mutants that make a test wait. These limits are wide, for a busy machine; an endless loop is noticed by its number
  // of turns.
  timeoutMS: 30_000,
  timeoutFactor: 3,
  dryRunTimeoutMinutes: 60,

  tempDirName: '.cache/mutation/copies',
  cleanTempDir: 'always',
  ignorePatterns: ['/.cache', '/build', '/dist'],
  // No such file: to change the real one, the tester would need a programming interface that TypeScript 7 does not have.
  tsconfigFile: '.cache/none',

  reporters: ['progress-append-only', 'clear-text', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: '.cache/mutation/report.json' },
};
