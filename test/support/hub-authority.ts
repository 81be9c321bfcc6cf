import { HubAuthority } from '../../src/certificates/authority.ts';
import type { Authority } from '../../src/system/x509/certificates.ts';

/** The settings of a store, only in memory. */
export function memorySettingsStore(settings: Map<string, string>) {
  return {
    setting: async (name: string) => settings.get(name) ?? null,
    saveSetting: async (name: string, value: string) => void settings.set(name, value),
    async saveSettings(values: Readonly<Record<string, string>>) {
      for (const [name, value] of Object.entries(values)) settings.set(name, value);
    },
    settings: async (names: readonly string[]) => new Map([...settings].filter(([name]) => names.includes(name))),
    async replaceSettings(expected: Readonly<Record<string, string | null>>, values: Readonly<Record<string, string>>) {
      if (Object.entries(expected).some(([name, value]) => (settings.get(name) ?? null) !== value)) return false;
      await this.saveSettings(values);
      return true;
    },
  };
}

/** A hub authority with this CA, as if it had created the CA. */
export function hubAuthority(authority: Authority, settings = new Map<string, string>()): Promise<HubAuthority> {
  settings.set('ca_key', authority.key).set('ca_certificate', authority.certificate);
  return HubAuthority.load(memorySettingsStore(settings), () => ({ names: [], networks: [] }));
}
