// The SBOM of a package or an image, as CycloneDX 1.6: https://cyclonedx.org/docs/1.6/json/
import { createHash } from 'node:crypto';
import type { Component } from './components.ts';

/** Node.js and its bundled components, with names and versions as in `process.versions`. */
export interface NodeRuntime {
  readonly part: Component;
  /** SHA-256 of the binary, hex. */
  readonly sha256: string;
  readonly inside: ReadonlyMap<string, string>;
}

/** What the SBOM describes. */
export interface Product {
  readonly name: string;
  /** The type of a CycloneDX component: `application`, `container`. */
  readonly type: string;
  readonly version: string;
  /** https://github.com/package-url/purl-spec */
  readonly purl: string;
  /** Of the commit, in seconds since 1970. */
  readonly epoch: number;
  /** An SPDX expression. */
  readonly licence: string;
}

/** A component in the form of CycloneDX, for kinds that only one product has. */
export type SbomComponent = Readonly<Record<string, unknown>> & { readonly 'bom-ref': string };

/**
 * The SBOM as JSON text. The same content gives the same bytes.
 * @param others more components
 */
export function createSbom(
  product: Product,
  runtime: NodeRuntime,
  parts: readonly Component[],
  others: readonly SbomComponent[] = [],
): string {
  const ref = product.purl;
  const components: readonly SbomComponent[] = [nodeComponent(runtime), ...parts.map(component), ...others];
  const content = {
    metadata: {
      timestamp: new Date(product.epoch * 1000).toISOString(),
      component: {
        type: product.type,
        name: product.name,
        version: product.version,
        licenses: licensesOf(product),
        purl: ref,
        'bom-ref': ref,
      },
    },
    components,
    dependencies: [
      { ref, dependsOn: components.map((inside) => inside['bom-ref']) },
      ...components.map((inside) => ({ ref: inside['bom-ref'] })),
    ],
  };
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function component({ name, version, licence, purl }: Component) {
  const [, group, short] = /^(@[^/]+)\/(.+)$/.exec(name) ?? [undefined, undefined, name];
  return {
    type: 'library',
    ...(group !== undefined && { group }),
    name: short ?? name,
    version,
    licenses: licensesOf({ licence }),
    purl,
    'bom-ref': purl,
  };
}

/** CycloneDX has a separate form for SPDX expressions with AND and OR. */
function licensesOf({ licence }: { readonly licence: string }) {
  return /\s/.test(licence) ? [{ expression: licence }] : [{ license: { id: licence } }];
}

function nodeComponent({ part, sha256, inside }: NodeRuntime) {
  const { group: _, ...own } = component(part);
  return {
    ...own,
    type: 'platform',
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    components: [...inside].map(([name, version]) => {
      const purl = `pkg:generic/${name}@${encodeURIComponent(version)}`;
      return { type: 'library', name, version, purl, 'bom-ref': `${part.purl}#${name}` };
    }),
  };
}

/** A UUID of version 8 (RFC 9562, 5.8), derived from a text. */
function uuidOf(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hash.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    variant + hash.slice(18, 20),
    hash.slice(20, 32),
  ].join('-');
}
