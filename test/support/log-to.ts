import type { Level } from '../../src/core/log/table.ts';
import type { Log, LogFields } from '../../src/core/log.ts';

/** A log that passes each line to a function. */
export function logTo(record: (event: string, fields: LogFields, level: Level) => unknown): Log {
  const write =
    (level: Level) =>
    (event: string, fields: LogFields = {}) =>
      void record(event, fields, level);
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    at: (level, event, ...members) => write(level)(event, ...members),
  };
}
