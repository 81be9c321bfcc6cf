/** One requirement of a standard and the test that checks it; docs/emulator-checklist.md has the same rows. */
export interface Row {
  /** Such as `RFC 6749, 5.2`. */
  readonly section: string;
  readonly requirement: string;
  check(): Promise<void>;
}
