import type { LoginLink } from '../portals/login-link.ts';
import { mapLinks, type Pairing } from './pairing.ts';

/**
 * A pairing as another hub has stored it, with the link objects that this hub has for the same links: a request that
 * is under way names its link by the object. A device link that is polled less often by now is another one.
 */
export function withKnownLinks(pairing: Pairing, known: readonly LoginLink[]): Pairing {
  const isSame = (one: LoginLink, other: LoginLink) =>
    linkKey(one) === linkKey(other) && intervalOf(one) === intervalOf(other);
  const step = mapLinks(pairing.step, (link) => known.find((other) => isSame(link, other)) ?? link);
  return { ...pairing, step };
}

function intervalOf(link: LoginLink): number | null {
  return link.kind === 'device' ? link.interval : null;
}

/** What tells the links of a pairing apart: at some portals, all device codes have the same address. */
export function linkKey(link: { readonly authorizeUrl: string; readonly userCode?: string }): string {
  return `${link.authorizeUrl} ${link.userCode ?? ''}`;
}
