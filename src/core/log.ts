/** What a log line may carry. A `Secret` is none of these, so it can't get into one. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>> & OwnFields;

/** What every line has of its own. */
interface OwnFields {
  readonly level?: never;
  readonly time?: never;
  readonly event?: never;
}

/** The log: one event a line, named in the present or past tense ("refreshed"), with its fields beside it. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
