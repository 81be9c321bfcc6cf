/** The value of a field of `status`. Null or left out if it is unknown, or if there is none. */
export type FieldValue = string | number | null | undefined;

/**
 * How surfaces show a field of `status` that needs no words of its own. `latchkey status`, the page and the metrics are
 * rendered from these descriptions.
 */
export interface StatusField {
  /** Its name in JSON. */
  readonly member: string;
  /**
   * What it is: text; in RFC 3339 UTC an instant of the past, or a deadline, until which something lasts; or a number of
   * seconds, until something happens or since something began.
   */
  readonly kind: 'text' | 'instant' | 'deadline' | 'seconds_until' | 'seconds_since';
  /** What `latchkey status` says when the time that it counts to has come; left out for `now`. */
  readonly reached?: string;
  /** The heading of its column or line in `latchkey status`; left out if it is not there. */
  readonly heading?: string;
  /** The page shows it, with the label of its name in `page/texts/`; left out if not. */
  readonly isOnPage?: true;
  /** Its metric; left out if there is none. An instant becomes a Unix time. */
  readonly metric?: { readonly name: string; readonly help: string };
  /** It changes whenever an appliance gets a token, which is no change of the state; left out if not. */
  readonly isUsage?: true;
}

/** The names of the fields that the page shows. */
export type PageField<Fields> = {
  [Name in keyof Fields]: Fields[Name] extends { readonly isOnPage: true } ? Name : never;
}[keyof Fields];

/** Whether a field changes with time alone, or with each token, so that a new value is no change of the state. */
export function isVolatile({ kind, isUsage }: StatusField): boolean {
  return kind === 'seconds_until' || kind === 'seconds_since' || isUsage === true;
}

/** When a field says that something happens or has happened, in ms since 1970; null if it is no time, or unknown. */
export function fieldTime({ kind }: StatusField, value: FieldValue, now: number): number | null {
  if (typeof value === 'string') return kind === 'text' ? null : Date.parse(value);
  if (typeof value !== 'number') return null;
  return kind === 'seconds_since' ? now - value * 1000 : now + value * 1000;
}
