/** Everything that can go wrong and that a caller may have to tell apart. */
export type FailureCode =
  | 'appliance_exists'
  | 'appliance_declared'
  | 'appliance_has_keys'
  | 'appliance_unknown'
  | 'certificate_unusable'
  | 'config_invalid'
  | 'control_socket_taken'
  | 'hub_id_taken'
  | 'hub_name_claimed'
  | 'hub_not_running'
  | 'hub_stopping'
  | 'name_invalid'
  | 'not_allowed'
  | 'pairing_unknown'
  | 'passphrase_weak'
  | 'portal_unknown'
  | 'portal_unreachable'
  | 'port_unavailable'
  | 'request_invalid'
  | 'scope_invalid'
  | 'state_dir_unusable'
  | 'copy_unusable'
  | 'store_key_wrong'
  | 'store_locked'
  | 'store_newer'
  | 'store_unreadable'
  | 'store_unwritable'
  | 'token_unavailable'
  | 'unexpected';

/** A failure with a code for programs and one clear sentence for people: what, where, and what to do. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: FailureCode;
  /** The message says what the cause says, in better words: {@link messageOf} leaves that out. */
  readonly includesCause: boolean;
  /** The message without what to do. */
  readonly summary: string;

  /** @param options `advice`: what to do, as the end of the message */
  constructor(
    code: FailureCode,
    summary: string,
    options?: ErrorOptions & { readonly isWhole?: boolean; readonly advice?: string },
  ) {
    super(options?.advice === undefined ? summary : `${summary}: ${options.advice}`, options);
    this.code = code;
    this.includesCause = options?.isWhole === true;
    this.summary = summary;
  }
}

/** As {@link messageOf}, for a text that says by itself what to do. */
export function messageWithoutAdvice(error: unknown): string {
  return error instanceof Failure && error.includesCause ? error.summary : messageOf(error);
}

/** The message of whatever was thrown, with the messages of its causes where it does not say what they say. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const several = error instanceof AggregateError ? error.errors.map(messageOf).join(', ') : '';
  const own = error.message || several || error.name;
  const isWhole = error.cause === undefined || (error instanceof Failure && error.includesCause);
  return isWhole ? own : `${own}: ${messageOf(error.cause)}`;
}
