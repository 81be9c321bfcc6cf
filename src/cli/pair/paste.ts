import type { ControlClient } from '../../control/client.ts';
import { Secret } from '../../core/secret.ts';
import { print, printable, printJson, reportFailure } from '../terminal/output.ts';
import { readAddress } from '../terminal/secret-input.ts';
import { loginFailedText, pairingFailedText } from './failure-texts.ts';

/**
 * `latchkey pair NAME --paste ADDRESS`: hands the address on which a browser ended to the open pairing of NAME, and
 * reports how the pairing ended.
 * @param address `-` to read it from standard input
 */
export async function pasteAddress(
  hub: ControlClient,
  name: string,
  address: string,
  { json = false }: { readonly json?: boolean },
): Promise<void> {
  const pasted = address === '-' ? await readAddress('The address on which the browser ended: ') : new Secret(address);
  const { pairing, failure } = await hub.request('pasteAddress', { name, address: pasted.reveal() });
  const outcome = failure === null ? await followExchange(hub, pairing) : { reason: failure, message: null };
  if ('scope' in outcome) {
    const { scope } = outcome;
    if (json) printJson({ event: 'paired', scope });
    else print(`${name} is connected${scope === null ? '' : `, scope ${printable(scope)}`}`);
    return;
  }
  const { reason, message } = outcome;
  if (json) printJson({ event: 'failed', reason });
  reportFailure(
    pairingFailedText(name, { message: message ?? `${loginFailedText(reason)} ("latchkey status" shows it)` }),
  );
}

/** Follows a pairing until the exchange of its code has ended: the hub does not wait long for a slow portal. */
async function followExchange(hub: ControlClient, pairing: string) {
  let link: string | null = null;
  for await (const report of hub.followPairing(pairing, new AbortController().signal)) {
    if (report.event === 'paired' || report.event === 'failed') return report;
    // A link whose login yielded nothing is replaced.
    if (report.event === 'connecting' || (link !== null && report.authorize_url !== link)) break;
    link = report.authorize_url;
  }
  return { reason: 'code_refused', message: null } as const;
}
