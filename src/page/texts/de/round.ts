import type { round as english } from '../en/round.ts';
import { result } from './result.ts';

export const round: typeof english = {
  title: 'Alle Geräte verbinden',
  progress: (connected, all) => `${connected} von ${all} verbunden`,
  done: (count) =>
    ['Ihr Gerät ist verbunden', 'Beide Geräte sind verbunden'][count - 1] ?? `Alle ${count} Geräte sind verbunden`,
  notAll: (connected, all) => `${connected} von ${all} Geräten ${connected === 1 ? 'ist' : 'sind'} verbunden`,
  none: 'Es gibt noch kein Gerät',
  noneText: 'Fügen Sie zuerst auf der Übersicht eines hinzu.',
  connected: 'Verbunden',
  open: 'Noch nicht verbunden',
  more: (count) => (count === 1 ? 'und noch eines' : `und ${count} weitere`),
  accounts:
    'Die Geräte wurden mit verschiedenen Konten verbunden. War das nicht gewollt, öffnen Sie das falsche und melden Sie sich dort noch einmal an.',
  next: (appliance) => `Weiter mit ${appliance}`,
  stop: 'Hier aufhören',
  skip: (appliance) => `${appliance} auslassen`,
  again: (appliance) => `${appliance} noch einmal versuchen`,
  others: 'Die übrigen noch einmal verbinden',
  goOn: 'Mit den übrigen fortfahren',
  closing: 'Das war das letzte. Sie können diese Seite schließen.',
  toHub: 'Zur Seite des Hubs',
  unreachable: 'Das Portal ist nicht erreichbar',
  unreachableText: (appliance) =>
    `Der Hub bekommt gerade keinen Link für ${appliance}. Prüfen Sie, ob das Haus online ist, und versuchen Sie es noch einmal.`,
  over: 'Dieser Durchgang ist beendet',
  overText: 'Fahren Sie auf der Seite des Hubs fort, oder mit „latchkey pair --all“.',
  reasons: {
    ...result.reasons,
    waiting_for_approval: 'Es wartet auf Ihre Freigabe.',
    not_begun: 'Es war noch nicht an der Reihe.',
  },
};
