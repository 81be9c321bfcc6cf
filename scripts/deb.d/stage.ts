// Writes the contents of the Debian package except Node.js: `node scripts/deb.d/stage.ts ARCH VERSION NODE OUT`. NODE
// is the folder of the npm package with Node.js for that architecture. The bundle, package.json, the licences and the
// SBOM are written to OUT.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stageProgram } from './program.ts';
import { createSbom } from './sbom.ts';

const [arch, version, node, out] = process.argv.slice(2);
if ((arch !== 'amd64' && arch !== 'arm64') || version === undefined || node === undefined || out === undefined) {
  console.error('usage: node scripts/deb.d/stage.ts amd64|arm64 VERSION NODE OUT');
  process.exit(2);
}
const { licence, runtime, parts } = await stageProgram({ arch, version, node, out });
const product = {
  name: 'latchkey',
  type: 'application',
  version,
  purl: `pkg:deb/latchkey@${version}?arch=${arch}`,
  epoch: Number(process.env['SOURCE_DATE_EPOCH'] ?? 0),
  licence,
};
writeFileSync(join(out, 'usr/share/doc/latchkey/sbom.cdx.json'), createSbom(product, runtime, parts));
