/** The codes of failures that a caller may have to distinguish. */
export type FailureCode =
  | 'appliance_exists'
  | 'appliance_declared'
  | 'appliance_has_keys'
  | 'appliance_unknown'
  | 'certificate_unusable'
  | 'config_invalid'
  | 'connection_declared'
  | 'connection_exists'
  | 'connection_in_use'
  | 'connection_mismatch'
  | 'connection_unknown'
  | 'client_rejected'
  | 'control_socket_taken'
  | 'address_rejected'
  | 'hub_id_taken'
  | 'hub_name_claimed'
  | 'hub_not_running'
  | 'hub_stopping'
  | 'import_failed'
  | 'name_invalid'
  | 'not_allowed'
  | 'pairing_unknown'
  | 'passphrase_weak'
  | 'portal_declared'
  | 'portal_exists'
  | 'portal_in_use'
  | 'portal_unknown'
  | 'portal_unreachable'
  | 'port_unavailable'
  | 'request_invalid'
  | 'scope_invalid'
  | 'database_unavailable'
  | 'database_unusable'
  | 'state_dir_unusable'
  | 'copy_unusable'
  | 'store_key_wrong'
  | 'store_locked'
  | 'store_schema_unknown'
  | 'store_unreadable'
  | 'store_unwritable'
  | 'token_unavailable'
  | 'unexpected';

/** A failure with a code for programs and one sentence for people: what is wrong, where, and what to do. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: FailureCode;
  /** Whether the message already contains what the cause says, so that {@link messageOf} does not append the cause. */
  readonly includesCause: boolean;
  /** The message without the advice. */
  readonly summary: string;

  /** @param options `advice`: what to do, appended to the message; `includesCause`: see there */
  constructor(
    code: FailureCode,
    summary: string,
    options?: ErrorOptions & { readonly includesCause?: boolean; readonly advice?: string },
  ) {
    super(options?.advice === undefined ? summary : `${summary}: ${options.advice}`, options);
    this.code = code;
    this.includesCause = options?.includesCause === true;
    this.summary = summary;
  }
}

/** As {@link messageOf}, but without advice, for a text that has its own. */
export function messageWithoutAdvice(error: unknown): string {
  return error instanceof Failure && error.includesCause ? error.summary : messageOf(error);
}

/**
 * The message of a thrown value, with the messages of its causes unless it contains them
 * ({@link Failure.includesCause}).
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const several = error instanceof AggregateError ? error.errors.map(messageOf).join(', ') : '';
  const own = error.message || several || error.name;
  const isComplete = error.cause === undefined || (error instanceof Failure && error.includesCause);
  return isComplete ? own : `${own}: ${messageOf(error.cause)}`;
}
