import { fstatSync } from 'node:fs';
import pino from 'pino';
import type { Level } from '../core/log/table.ts';
import type { EventMembersOf, LevelOf, Log, LogEvent, LogFields } from '../core/log.ts';
import { rewriteCommands } from './command-invocation.ts';
import { TokenBuckets } from './limits/token-buckets.ts';

/** A stream for log lines. */
export interface LogStream {
  write(line: string): void;
}

/** The lowest level that is logged. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Characters of one field; longer texts are cut. The longest link of a portal still fits. */
const MAX_FIELD = 8192;
/** Bytes that are buffered while the log can't be written; further lines are lost. */
const MAX_BUFFERED = 1 << 20;

/** Limit of lines per event and appliance, or per event and connection; `interval` in ms. */
const SUBJECT_EVENT_LIMIT = { burst: 20, interval: 30_000 };
/** Limit of lines per event in total; `interval` in ms. */
const EVENT_LIMIT = { burst: 500, interval: 1000 };

/**
 * Logs one event per line as JSON, with the event's name in `event`. Fields can't contain a `Secret` (see `LogFields`);
 * at run time one would appear as `[secret]`. A rate limit keeps clients from filling the journal: lines above the
 * limit are suppressed, and the next line has their number in `suppressed`.
 * @param stream default: standard error, written synchronously, so that a crash loses nothing
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
  function write<E extends LogEvent>(level: LevelOf<E>, event: E, ...members: EventMembersOf<E>): void;
  function write(level: Level, event: string, members: LogFields = {}): void {
    // Not limited: whoever enables `debug` wants all of it.
    const suppressed =
      level === 'debug' ? 0 : take(event, String(members['appliance'] ?? members['connection'] ?? ''), now());
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

/** Counts lines. Returns null if a line exceeds the limit, else how many were suppressed since the last logged one. */
function lineLimiter(): (event: string, subject: string, now: number) => number | null {
  const buckets = new TokenBuckets();
  return (event, subject, now) => {
    const all = buckets.refill(event, EVENT_LIMIT, now);
    const own = buckets.refill(`${event} ${subject}`, SUBJECT_EVENT_LIMIT, now);
    if (all.tokens < 1 || own.tokens < 1) {
      own.rejected += 1;
      return null;
    }
    all.tokens -= 1;
    own.tokens -= 1;
    const { rejected: suppressed } = own;
    own.rejected = 0;
    return suppressed;
  };
}

/** The priorities with which lines for the journal begin (sd-daemon(3)), by pino's levels. */
const PRIORITIES: Readonly<Record<number, number>> = { 20: 7, 30: 6, 40: 4, 50: 3 };

/**
 * Whether standard error is connected to the journal: `JOURNAL_STREAM` has the stream's device and inode
 * (systemd.exec(5)).
 */
export function isStderrJournal(env: NodeJS.ProcessEnv = process.env): boolean {
  try {
    const { dev, ino } = fstatSync(2);
    return env['JOURNAL_STREAM'] === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** Wraps a stream so that lines begin with their priority, for `journalctl -p warning`. */
export function withPriorities(stream: LogStream): LogStream {
  return {
    // Makes pino set `lastLevel` before each write.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 30,
    write(this: { lastLevel: number }, line: string) {
      stream.write(`<${PRIORITIES[this.lastLevel] ?? 6}>${line}`);
    },
  } as LogStream;
}

/** Ignores write errors: the daemon must not end because its log can't be written (full disk, closed pipe). */
function standardError(): LogStream {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: MAX_BUFFERED });
  destination.on('error', () => undefined);
  return isStderrJournal() ? withPriorities(destination) : destination;
}

/** Truncates texts, and rewrites the commands in them for the reader of the log. */
function formatFields(fields: LogFields): LogFields {
  const texts = Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, rewriteCommands(truncate(value))] as const] : [],
  );
  return { ...fields, ...Object.fromEntries(texts) };
}

function truncate(text: string): string {
  return text.length > MAX_FIELD ? `${text.slice(0, MAX_FIELD)}…` : text;
}
