import { sha256 } from '../system/compare.ts';

/** Where a grant's refreshes lie among all hubs' grants: from 0 to 1, evenly, and for a grant always the same. */
export function jitterOffsetOf(hubId: string, appliance: string): number {
  return Buffer.from(sha256(`${hubId}/${appliance}`), 'base64url').readUInt32BE() / 2 ** 32;
}
