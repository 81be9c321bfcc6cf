const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The formats that were used, because to create one takes a hundred times as long as to use it. */
const relativeFormats = new Map<string, Intl.RelativeTimeFormat>();
const dateFormats = new Map<string, Intl.DateTimeFormat>();

/**
 * A time difference in words such as "5 minutes ago" or "in 40 minutes"; less than a second is "now".
 * @param language BCP 47
 * @param ms from now; negative for the past
 */
export function formatRelativeTime(language: string, ms: number): string {
  const format = relativeFormats.get(language) ?? new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
  relativeFormats.set(language, format);
  const size = Math.abs(ms);
  if (size < MINUTE_MS) return format.format(Math.trunc(ms / SECOND_MS), 'second');
  if (size < 90 * MINUTE_MS) return format.format(Math.trunc(ms / MINUTE_MS), 'minute');
  if (size < 36 * HOUR_MS) return format.format(Math.round(ms / HOUR_MS), 'hour');
  return format.format(Math.round(ms / DAY_MS), 'day');
}

/**
 * A time as date and time of day.
 * @param language BCP 47
 * @param wall ms since 1970
 * @param zoned whether to name the time zone: the hub's may differ from the browser's
 */
export function formatDateTime(language: string, wall: number, zoned: boolean): string {
  const format = dateFormats.get(`${language} ${zoned}`) ?? createDateFormat(language, zoned);
  dateFormats.set(`${language} ${zoned}`, format);
  return format.format(wall);
}

function createDateFormat(language: string, zoned: boolean): Intl.DateTimeFormat {
  // "en" alone formats dates in the American way.
  return new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(zoned && { timeZoneName: 'short' }),
  });
}
