import { BlockList, isIP } from 'node:net';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_nameConstraints,
  NameConstraints,
} from '@peculiar/asn1-x509';
import { Extension, type X509Certificate } from '@peculiar/x509';
import type { PermittedNames } from './certificates.ts';

/**
 * The name constraints extension of a CA certificate (RFC 5280 section 4.2.1.10). It is not critical, because Mbed TLS
 * (2.28) rejects unknown critical extensions, and verifiers that know the extension apply it in any case.
 */
export function nameConstraints({ names, networks }: PermittedNames): Extension {
  const bases = [...names.map((dNSName) => ({ dNSName })), ...networks.map((iPAddress) => ({ iPAddress }))];
  const subtrees = bases.map((base) => new GeneralSubtree({ base: new GeneralName(base) }));
  const constraints = new NameConstraints({ permittedSubtrees: new GeneralSubtrees(subtrees) });
  return new Extension(id_ce_nameConstraints, false, AsnConvert.serialize(constraints));
}

/** Checks whether a CA permits a name or an IP address in certificates below it. */
export interface NameConstraintChecker {
  permitsName(name: string): boolean;
  permitsAddress(address: string): boolean;
}

/**
 * Reads the name constraints of a CA certificate. Without any, everything is permitted. Supports only constraints as
 * {@link nameConstraints} creates them: permitted DNS names and networks.
 */
export function readNameConstraints(authority: X509Certificate): NameConstraintChecker {
  const extension = authority.getExtension(id_ce_nameConstraints);
  if (extension === null) return { permitsName: () => true, permitsAddress: () => true };
  const { permittedSubtrees = [] } = AsnConvert.parse(extension.value, NameConstraints);
  const names: string[] = [];
  const networks = new BlockList();
  for (const { base } of permittedSubtrees) {
    if (base.dNSName !== undefined) names.push(base.dNSName);
    const [address, bits] = base.iPAddress?.split('/') ?? [];
    if (address !== undefined) networks.addSubnet(address, Number(bits), addressFamily(address));
  }
  return {
    permitsName: (name) => names.some((base) => name === base || name.endsWith(`.${base}`)),
    permitsAddress: (address) => networks.check(address, addressFamily(address)),
  };
}

function addressFamily(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
