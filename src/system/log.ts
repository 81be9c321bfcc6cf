import { fstatSync } from 'node:fs';
import pino from 'pino';
import type { Level } from '../core/log/table.ts';
import type { LevelOf, Log, LogEvent, LogFields, MembersOf } from '../core/log.ts';
import { rewriteCommands } from './command-invocation.ts';
import { TokenBuckets } from './limits/token-bucket.ts';

/** What a stream for log lines must offer. */
export interface LogStream {
  write(line: string): void;
}

/** How much is told. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Characters of one field; what is longer is cut. A portal's link may be as long, and is told whole. */
const MAX_FIELD = 8192;
/** Bytes that wait while the log can't be written; what comes beyond them is lost. */
const MAX_BUFFERED = 1 << 20;

/** Lines of one event about one appliance: so many at once, then one in so many ms. */
const APPLIANCE_EVENT_LIMIT = { burst: 20, interval: 30_000 };
/** Lines of one event in all. */
const EVENT_LIMIT = { burst: 500, interval: 1000 };

/**
 * Logs as JSON, one event a line, with the event's name in `event`. Fields can't hold a `Secret` (see `LogFields`), and
 * one that got in all the same would show itself as `[secret]`. A client that makes an event happen again and again
 * does not fill the journal: lines above the limit are suppressed, and the next one says how many (`suppressed`).
 * @param stream default: standard error, written at once, so that nothing is lost in a crash
 * @param now milliseconds on any clock that does not go back
 */
export function createLog(
  level: LogLevel = 'info',
  stream: LogStream = standardError(),
  now: () => number = () => performance.now(),
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
  const take = lineLimiter();
  function write<E extends LogEvent>(level: LevelOf<E>, event: E, ...members: MembersOf<E>): void;
  function write(level: Level, event: string, members: LogFields = {}): void {
    // Only there where somebody asked for all of it.
    const suppressed = level === 'debug' ? 0 : take(event, String(members['appliance'] ?? ''), now());
    if (suppressed === null) return;
    logger[level]({ ...formatFields(members), ...(suppressed > 0 && { suppressed }) }, event);
  }
  return {
    debug: (event, ...members) => write('debug', event, ...members),
    info: (event, ...members) => write('info', event, ...members),
    warn: (event, ...members) => write('warn', event, ...members),
    error: (event, ...members) => write('error', event, ...members),
    at: write,
  };
}

/** Counts lines: null if one is too much; else how many were suppressed since the last one that was not. */
function lineLimiter(): (event: string, appliance: string, now: number) => number | null {
  const buckets = new TokenBuckets();
  return (event, appliance, now) => {
    const all = buckets.refill(event, EVENT_LIMIT, now);
    const own = buckets.refill(`${event} ${appliance}`, APPLIANCE_EVENT_LIMIT, now);
    if (all.tokens < 1 || own.tokens < 1) {
      own.rejected += 1;
      return null;
    }
    all.tokens -= 1;
    own.tokens -= 1;
    const { rejected: refused } = own;
    own.rejected = 0;
    return refused;
  };
}

/** What the journal takes for a line's priority where it begins with it (sd-daemon(3)), by pino's levels. */
const PRIORITIES: Readonly<Record<number, number>> = { 20: 7, 30: 6, 40: 4, 50: 3 };

/**
 * Whether standard error is the journal, as systemd.exec(5) has it: `JOURNAL_STREAM` names the stream's device and inode.
 */
export function isStderrJournal(env: NodeJS.ProcessEnv = process.env): boolean {
  try {
    const { dev, ino } = fstatSync(2);
    return env['JOURNAL_STREAM'] === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** A stream whose lines begin with their priority, so that `journalctl -p warning` finds them. */
export function withPriorities(stream: LogStream): LogStream {
  return {
    // With this pino says which level a line has.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 30,
    write(this: { lastLevel: number }, line: string) {
      stream.write(`<${PRIORITIES[this.lastLevel] ?? 6}>${line}`);
    },
  } as LogStream;
}

/** A log that can't be written (a full disk, a reader that is gone) is no reason to end. */
function standardError(): LogStream {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: MAX_BUFFERED });
  destination.on('error', () => undefined);
  return isStderrJournal() ? withPriorities(destination) : destination;
}

/** Texts as a person reads them in the log, none too long. */
function formatFields(fields: LogFields): LogFields {
  const texts = Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, rewriteCommands(truncate(value))] as const] : [],
  );
  return { ...fields, ...Object.fromEntries(texts) };
}

function truncate(text: string): string {
  return text.length > MAX_FIELD ? `${text.slice(0, MAX_FIELD)}…` : text;
}
