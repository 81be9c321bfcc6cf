/** An option that can't be used; the message names it, what was found and what is allowed. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}
