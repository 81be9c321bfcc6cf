import { readFile } from 'node:fs/promises';

/**
 * A group's number by /etc/group, as group(5) has it: `name:password:number:members`.
 * @returns null where there is no such group, or no such file
 */
export async function groupId(name: string, file = '/etc/group'): Promise<number | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const fields = text.split('\n').map((line) => line.split(':'));
  const id = fields.find(([group]) => group === name)?.[2];
  return id !== undefined && /^\d+$/.test(id) ? Number(id) : null;
}
