// The configurations of the images.
import { USER_ID } from './debian-layer.ts';
import type { Layer } from './layer.ts';

/** One of the images. */
export interface ImageKind {
  readonly name: 'latchkey' | 'latchkey-home-assistant' | 'latchkey-emulator';
  readonly description: string;
  /** The numeric user and group. */
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly env: readonly string[];
  readonly ports: readonly number[];
}

const PROGRAM = '/usr/bin/latchkey';
const USER = `${USER_ID}:${USER_ID}`;

const COMMON_ENV = [
  'PATH=/usr/bin',
  // For glibc's allocator: fewer arenas take less memory.
  'MALLOC_ARENA_MAX=2',
  // Compiled code is cached here if the root file system is writable.
  'CACHE_DIRECTORY=/var/cache/latchkey',
  // A memory file system that engines also mount if the root file system is read-only.
  'TMPDIR=/dev/shm',
];

/** The hub's image. */
const HUB: ImageKind = {
  name: 'latchkey',
  description: "OAuth server for a home's appliances, on the home hub",
  user: USER,
  entrypoint: [PROGRAM],
  command: ['serve'],
  env: [
    ...COMMON_ENV,
    'LATCHKEY_CONTAINER=1',
    'STATE_DIRECTORY=/var/lib/latchkey',
    'CREDENTIALS_DIRECTORY=/run/secrets',
    'NODE_OPTIONS=--max-semi-space-size=1 --max-old-space-size=128',
  ],
  ports: [8480, 8443],
};

/** The images, which share all layers. */
export const IMAGE_KINDS: readonly ImageKind[] = [
  HUB,
  // Home Assistant runs an app as the user of its image, and mounts /data for root.
  { ...HUB, name: 'latchkey-home-assistant', description: 'Latchkey as an app of Home Assistant', user: '0:0' },
  {
    name: 'latchkey-emulator',
    description: "Latchkey's portal emulator, for tests and test benches",
    user: USER,
    entrypoint: [PROGRAM, 'emulator'],
    command: ['--port', '8490', '--frontend-port', '8491'],
    env: [...COMMON_ENV, 'NODE_OPTIONS=--max-semi-space-size=1'],
    ports: [8490, 8491],
  },
];

/** What is known about the sources of an image. */
export interface ImageSource {
  readonly version: string;
  /** The commit; empty if the sources are in no repository. */
  readonly revision: string;
  /** The time of the commit, in seconds since 1970. */
  readonly epoch: number;
  /** An SPDX expression. */
  readonly licence: string;
}

/** The labels of an image: the predefined ones (OCI image specification, annotations), and those of Home Assistant. */
export function imageLabels(
  { name, description }: ImageKind,
  { version, revision, epoch, licence }: ImageSource,
): Record<string, string> {
  const {
    LATCHKEY_MAINTAINER: authors = '',
    LATCHKEY_HOMEPAGE: url = '',
    LATCHKEY_REPOSITORY: sources = '',
  } = process.env;
  const labels = {
    title: name,
    description,
    version,
    revision,
    created: new Date(epoch * 1000).toISOString(),
    licenses: licence,
    'base.name': 'scratch',
    authors,
    url,
    source: sources,
  };
  return {
    ...Object.fromEntries(
      Object.entries(labels)
        .filter(([, value]) => value !== '')
        .map(([key, value]) => [`org.opencontainers.image.${key}`, value]),
    ),
    ...(name === 'latchkey-home-assistant' && {
      'io.hass.type': 'app',
      'io.hass.version': version,
      'io.hass.arch': 'amd64|aarch64',
    }),
  };
}

/** The configuration of an image for one architecture (OCI image specification, image configuration). */
export function imageConfig(kind: ImageKind, source: ImageSource, arch: string, layers: readonly Layer[]): object {
  const { user, entrypoint, command, env, ports } = kind;
  const created = new Date(source.epoch * 1000).toISOString();
  return {
    created,
    architecture: arch,
    os: 'linux',
    config: {
      User: user,
      // No Volumes: an engine would fill one with an anonymous volume, which is lost with the container.
      ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])),
      Env: env,
      Entrypoint: entrypoint,
      Cmd: command,
      WorkingDir: '/',
      Labels: imageLabels(kind, source),
      StopSignal: 'SIGTERM',
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => `sha256:${diffId}`) },
    history: layers.map(({ comment }) => ({ created, created_by: 'scripts/build-image', comment })),
  };
}
