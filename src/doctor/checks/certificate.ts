import { lookup } from 'node:dns/promises';
import { resolve } from 'node:path';
import { rfc3339Day } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { expiryWarningTime } from '../../system/x509/certificates.ts';
import { type CheckResult, type CheckResults, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isConfigurationKeyValid } from '../context.ts';

const RENEWAL_ADVICE =
  'renew it; if an ACME client does that, its log says why it has not ("systemctl list-timers" shows when it runs)';

/**
 * Checks whether the owner's own certificate is valid for long enough, and whether its name leads to the hub. The check
 * of the configuration reports files that can't be used.
 */
export async function checkCertificate(context: DoctorContext): Promise<CheckResults> {
  const { certificate } = context.configuration.lan;
  const isValid = ['lan.certificate_file', 'lan.key_file'].every((key) => isConfigurationKeyValid(context, key));
  if (certificate === null || !isValid) return [];
  const { files, leaf } = certificate;
  const name = leaf.names.find((one) => !one.startsWith('*'));
  return [
    checkExpiry(resolve(files.directory, files.certificate), leaf, context.wall()),
    name === undefined ? [] : await checkName(name, context),
  ].flat();
}

function checkExpiry(path: string, validity: Parameters<typeof expiryWarningTime>[0], now: number): CheckResult {
  const { notBefore, notAfter } = validity;
  const end = rfc3339Day(notAfter);
  if (now >= notAfter) return fail(`${path} expired on ${end}: ${RENEWAL_ADVICE}; if the clock is wrong, correct it`);
  if (now < notBefore) return fail(`${path} is not valid before ${rfc3339Day(notBefore)}: correct the clock`);
  if (now < expiryWarningTime(validity)) return ok(`${path} is valid until ${end}`);
  return warn(`${path} expires on ${end}, and should have been renewed by now: ${RENEWAL_ADVICE}`);
}

/** The hub gives its appliances and browsers this name, unless the certificate is also valid for its address. */
async function checkName(name: string, { hub }: DoctorContext): Promise<CheckResults> {
  if (hub.kind !== 'running' || hub.hub.address === null) return [];
  const { address } = hub.hub;
  const suffix = '.name';
  const advice = `create a DNS record that gives ${name} the address ${address}; if your router ignores such records (DNS rebinding protection), allow the name there`;
  try {
    const found = (await lookup(name, { all: true })).map((one) => one.address);
    if (found.includes(address)) return ok(`${name} leads to this hub (${address})`, suffix);
    return warn(`${name} has the address ${found.join(', ')}, not that of this hub (${address}): ${advice}`, suffix);
  } catch (error) {
    return warn(`${name} can't be found (${messageOf(error)}): ${advice}`, suffix);
  }
}
