import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as v from 'valibot';
import { parse } from 'yaml';
import { root } from '../../project/checkout.ts';

const run = promisify(execFile);

/** What tests use of the app's `config.yaml`. */
const configSchema = v.object({
  version: v.string(),
  image: v.string(),
  ingress_port: v.number(),
  watchdog: v.string(),
  environment: v.record(v.string(), v.string()),
  backup_pre: v.string(),
  backup_exclude: v.array(v.string()),
  options: v.record(v.string(), v.unknown()),
  schema: v.looseObject({ portals: v.tuple([v.record(v.string(), v.string())]) }),
});

/** Builds the repository of the app. @returns the folder */
export async function buildAppRepository(output: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(join(root, 'scripts/build-home-assistant'), ['--output', output, ...args]);
  return stdout.trim();
}

/** A YAML file of a repository, with every number as Home Assistant reads it. */
export function readYaml(file: string): unknown {
  return parse(readFileSync(file, 'utf8'));
}

/** @param repository as returned by {@link buildAppRepository} */
export function readAppConfig(repository: string): v.InferOutput<typeof configSchema> {
  return v.parse(configSchema, readYaml(join(repository, 'latchkey/config.yaml')));
}
