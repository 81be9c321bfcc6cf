import type { appliance as english } from '../en/appliance.ts';

export const appliance: typeof english = {
  state: 'Zustand',
  refreshNow: 'Jetzt erneuern',
  clientId: 'Client-ID',
  manage: 'Ändern',
  newSecret: 'Neues Geheimnis',
  doorLabel: 'Etikett für die Schranktür',
  disconnect: 'Trennen',
  remove: 'Entfernen',
  declared:
    'Dieses Gerät steht in der Konfigurationsdatei des Hubs: Sein Geheimnis und ob es da ist, wird in dieser Datei geändert.',
  rotateSure: (name) => `${name} ein neues Geheimnis geben?`,
  rotateText:
    'Das alte Geheimnis gilt ab sofort nicht mehr. Das neue ist am Gerät einzutragen. Mit dem Portal bleibt es verbunden.',
  rotateKeys:
    'Es weist sich mit eigenen Schlüsseln aus. Ein Geheimnis würde sie ersetzen, und sie würden nicht mehr gelten.',
  rotateKeysTick: 'Seine Schlüssel ersetzen',
  rotateKeysMissing: 'Hier ankreuzen, wenn seine Schlüssel ersetzt werden sollen.',
  disconnectSure: (name) => `${name} trennen?`,
  disconnectText:
    'Der Hub vergisst die Anmeldung und gibt dem Gerät keinen Zugang mehr. Um es wieder zu verbinden, muss sich jemand neu anmelden.',
  removeSure: (name) => `${name} entfernen?`,
  removeText: 'Der Hub vergisst das Gerät, sein Geheimnis und seine Anmeldung. Das lässt sich nicht zurücknehmen.',
  refuseSure: (name) => `${name} ablehnen?`,
  refuseText: 'Der Hub vergisst, dass es sich vorgestellt hat. Solange die Tür offen ist, kann es das wieder tun.',
  gone: 'Dieses Gerät gibt es nicht',
  goneText: (name) => `Der Hub kennt ${name} nicht. Vielleicht wurde es inzwischen entfernt.`,
  backToOverview: 'Zur Übersicht',
  backToAppliance: (name) => `Zu ${name}`,
  failures: {
    appliance_declared: 'Dieses Gerät steht in der Konfigurationsdatei des Hubs; es wird dort geändert und nicht hier.',
    not_allowed: 'So, wie es gerade steht, geht das nicht. Vielleicht hat es jemand anderes schon getan.',
    store_unwritable:
      'Der Hub konnte es nicht speichern: Sein Datenträger ist voll oder beschädigt. Es wurde nichts geändert.',
    token_unavailable: 'Es ist nicht verbunden, also gibt es nichts zu erneuern. Bitte zuerst anmelden.',
    hub_stopping: 'Der Hub wird gerade neu gestartet. Bitte gleich noch einmal versuchen.',
    other: 'Der Hub konnte es nicht tun. Sein Protokoll sagt mehr.',
  },
  notDone: 'Es wurde nichts geändert',
};
