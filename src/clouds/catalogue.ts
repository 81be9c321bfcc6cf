import * as v from 'valibot';
import { type Cloud, cloudSchema } from './cloud.ts';
import clouds from './clouds.json' with { type: 'json' };

/** What is shown beside every cloud. */
export const PROVENANCE = 'from public sources; not tried against the cloud itself';

/** The names of all clouds, in alphabetical order. */
export const CLOUD_NAMES: readonly string[] = Object.keys(clouds);

/** All clouds, in the order of their names. */
export function allClouds(): readonly Cloud[] {
  return Object.entries(clouds).map(([name, cloud]) => ({ name, ...v.parse(cloudSchema, cloud) }));
}

/** The cloud of that name; undefined if there is none. */
export function findCloud(name: string): Cloud | undefined {
  const [found] = Object.entries(clouds).filter(([own]) => own === name);
  return found && { name, ...v.parse(cloudSchema, found[1]) };
}
