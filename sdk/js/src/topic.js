// Topics and patterns: spec/topic.md.

const SYSTEMS = new Set(["dead", "groups", "audit"]);

/** Whether it has a wildcard. @param {string} text */
export const isPattern = (text) => text.split("/").some((part) => part === "*" || part === "**");

/**
 * Whether a pattern matches a topic. A wildcard that comes first stands for no topic of a system.
 *
 * @param {string} pattern
 * @returns {(topic: string) => boolean}
 */
export function matcher(pattern) {
  if (!isPattern(pattern)) return (topic) => topic === pattern;
  const wanted = pattern.split("/");
  const isOpen = wanted.at(-1) === "**";
  if (isOpen) wanted.pop();
  const isWild = wanted[0] === undefined || wanted[0] === "*";
  return (topic) => {
    const parts = topic.split("/");
    if (isWild && SYSTEMS.has(parts[0])) return false;
    if (isOpen ? parts.length < wanted.length : parts.length !== wanted.length) return false;
    return wanted.every((part, at) => part === "*" || part === parts[at]);
  };
}

/** A topic as a part of a path. @param {string} topic */
export const inPath = (topic) => topic.split("/").map(encodeURIComponent).join("/");
