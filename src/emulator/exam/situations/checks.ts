import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import { isGranted, isRefresh } from '../wire.ts';

/** What was seen of a client that sent a refresh token again after its response replaced it; null if it did not. */
export function findReuse(sitting: Sitting): string | null {
  const used = new Map<string, number>();
  for (const [index, request] of sitting.wire.requests.entries()) {
    if (!isRefresh(request)) continue;
    const { form, answer } = request.logged;
    const token = form['refresh_token'] ?? '';
    const before = used.get(token);
    if (before !== undefined)
      return `request ${index + 1} sent the refresh token that request ${before + 1} had sent already`;
    const isReplaced = 'refresh_token' in answer && answer['refresh_token'] !== token;
    if (isGranted(request) && isReplaced) used.set(token, index);
  }
  return null;
}

/** Fails if the client sent a refresh token again after its response replaced it. */
export function rejectReuse(sitting: Sitting): void {
  const reuse = findReuse(sitting);
  if (reuse !== null) fail(reuse);
}

/** Waits for two refreshes. The situation does not apply to a client that does not replace its refresh token. */
export async function rotated(sitting: Sitting): Promise<void> {
  await sitting.until('two refreshes', () => sitting.refreshes().filter(isGranted).length > 1 || findReuse(sitting));
  if (findReuse(sitting) !== null) {
    doesNotApply('the client sends refresh tokens again that were replaced: see the situation "each-token-once"');
  }
}
