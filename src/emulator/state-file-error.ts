/** A state file that can't be used; the message says which and what to do. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}
