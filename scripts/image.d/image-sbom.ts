// The SBOM of an image for one architecture.
import type { StagedProgram } from '../deb.d/program.ts';
import { createSbom, type SbomComponent } from '../deb.d/sbom.ts';
import type { DebianPackage } from './debian-layer.ts';
import type { ImageKind, ImageSource } from './image.ts';

/** The Debian release of the packages. */
const DEBIAN = '13';

/** The image that an SBOM describes. */
export interface DescribedImage {
  readonly kind: ImageKind;
  readonly source: ImageSource;
  /** The Debian name of the architecture. */
  readonly arch: string;
  /** The digest of the image's manifest. */
  readonly digest: string;
  readonly program: StagedProgram;
  readonly packages: readonly DebianPackage[];
}

/** The SBOM as CycloneDX JSON: the program's parts, Node.js and the Debian packages. */
export function imageSbom({ kind, source, arch, digest, program, packages }: DescribedImage): string {
  const product = {
    name: kind.name,
    type: 'container',
    version: source.version,
    epoch: source.epoch,
    licence: source.licence,
    purl: `pkg:oci/${kind.name}@${encodeURIComponent(digest)}?arch=${arch}&tag=${source.version}`,
  };
  const system: SbomComponent = {
    type: 'operating-system',
    name: 'debian',
    version: DEBIAN,
    'bom-ref': `debian-${DEBIAN}`,
  };
  const libraries = packages.map(({ name, version, sha256 }): SbomComponent => {
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}&distro=debian-${DEBIAN}`;
    return {
      type: 'library',
      name,
      version,
      hashes: [{ alg: 'SHA-256', content: sha256 }],
      purl,
      'bom-ref': purl,
    };
  });
  return createSbom(product, program.runtime, program.parts, [system, ...libraries]);
}
