import { afterAll, beforeAll, beforeEach } from 'vitest';

/** What tests need and this machine lacks; null if it has everything. */
type SkipReason = () => string | null | Promise<string | null>;

/** Skips the tests of this file or group if something that they need is missing. */
export function skipIfUnavailable(whyNot: SkipReason): void {
  beforeEach(async (ctx) => {
    const reason = await whyNot();
    if (reason !== null) ctx.skip(reason);
  });
}

interface SetUpOptions {
  /** If it returns a reason, nothing is set up and the tests are skipped. */
  readonly skipReason?: SkipReason;
  /** The timeout of `make`, in ms; default: that of every hook. */
  readonly timeout?: number;
}

/**
 * Sets up once what the tests of this file or group share.
 * @param make pushes what it starts onto the stack, which is disposed of after the last test
 * @returns the stack, so that tests can add to it
 */
export function setUpOnce(
  make: (parts: AsyncDisposableStack) => Promise<void>,
  { skipReason: whyNot = () => null, timeout }: SetUpOptions = {},
): AsyncDisposableStack {
  const parts = new AsyncDisposableStack();
  let reason: string | null = null;
  beforeAll(async () => {
    reason = await whyNot();
    if (reason === null) await make(parts);
  }, timeout);
  afterAll(() => parts.disposeAsync());
  skipIfUnavailable(() => reason);
  return parts;
}
