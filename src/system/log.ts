import pino from 'pino';
import type { Log } from '../core/log.ts';

/** What a stream for log lines must offer. */
export interface LogStream {
  write(line: string): void;
}

/** How much is told. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/**
 * Logs as JSON, one event a line, with the event's name in `event`. Fields can't hold a `Secret` (see `LogFields`), and
 * one that got in all the same would show itself as `[secret]`.
 * @param stream default: standard error, written at once, so that nothing is lost in a crash
 */
export function createLog(
  level: LogLevel = 'info',
  stream: LogStream = pino.destination({ dest: 2, sync: true }),
): Log {
  const logger = pino(
    {
      level,
      messageKey: 'event',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
  };
}
