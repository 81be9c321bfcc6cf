import type { ApplianceResponse } from '../../control/messages.ts';
import { formatTimeSince } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';

/** A table of the tokens that each appliance got; null if none has got one. @param now milliseconds since 1970 */
export function usageText(appliances: readonly ApplianceResponse[], now: number): string | null {
  const users = appliances.filter(({ last_token: last }) => last !== null);
  if (users.length === 0) return null;
  return alignColumns([
    ['TOKENS', 'LAST', 'TODAY', '14 DAYS'],
    ...users.map(({ name, last_token: last, tokens }) => [
      printable(name),
      formatTimeSince(last, now),
      String(tokens.today),
      String(tokens.last_14_days),
    ]),
  ]);
}
