/**
 * The C side of the wire: constants, structures and field tables of every message, from the TypeBox
 * description.
 */

const KINDS = { bool: 'U8', choice: 'U8' };
const TYPES = {
  u8: 'uint8_t',
  bool: 'bool',
  choice: 'uint8_t',
  u16: 'uint16_t',
  u32: 'uint32_t',
  u64: 'uint64_t',
  i32: 'int32_t',
  i64: 'int64_t',
  bytes: 'struct dsec_bytes',
  path: 'struct dsec_bytes',
  string: 'struct dsec_bytes',
  list: 'struct dsec_list',
};
const SIDES = { client: 'DSEC_FROM_CLIENT', server: 'DSEC_FROM_SERVER', both: 'DSEC_FROM_BOTH' };
const NOTICE = '/* Generated from packages/protocol by `npm run generate`. Do not edit. */';

export function renderCHeader(protocol, std) {
  const protocols = [protocol.AETHER_FRAMES, protocol.LAUNCHER_FRAMES];
  return `${[
    NOTICE,
    '#ifndef DSEC_PROTOCOL_GEN_H\n#define DSEC_PROTOCOL_GEN_H\n',
    '#include "message.h"\n',
    constants(protocol),
    ...protocols.map(frameCodes),
    errorCodes(std),
    ...messagesOf(protocols).map((message) => structure(message)),
    ...messagesOf(protocols).map((m) => `extern const struct dsec_message ${symbol(m)};`),
    '\nstruct dsec_protocol;',
    ...protocols.map((p) => `extern const struct dsec_protocol dsec_${p.name}_protocol;`),
    '\n#endif',
  ].join('\n')}\n`;
}

export function renderCTables(protocol) {
  const protocols = [protocol.AETHER_FRAMES, protocol.LAUNCHER_FRAMES];
  return `${[
    NOTICE,
    '#include "frame.h"\n',
    ...messagesOf(protocols).map(fieldTable),
    ...protocols.map((p) => frameTable(p, protocol)),
  ].join('\n')}`;
}

/** Every message that frames of these protocols can hold, the inner ones before those that use them. */
function messagesOf(protocols) {
  const byName = new Map();
  const visit = (message) => {
    for (const field of message.fields) if (field.message) visit(field.message);
    const known = byName.get(message.name);
    if (known === undefined) byName.set(message.name, message);
    else if (known !== message) throw new Error(`two messages are named ${message.name}`);
  };
  for (const { frames } of protocols) {
    for (const frame of Object.values(frames)) if (frame.message) visit(frame.message);
  }
  return [...byName.values()];
}

function constants(protocol) {
  const names = [
    'FRAME_VERSION',
    'FRAME_HEADER_BYTES',
    'FRAME_PAYLOAD_BYTES_MAX',
    'FRAME_DATA_BYTES_MAX',
    'FRAME_FLAG_END',
    'NONCE_BYTES',
    'WINDOW_BYTES_MIN',
    'WINDOW_BYTES_MAX',
    'STREAMS_MAX',
    'SANDBOX_ID_FIRST',
    'SANDBOX_ID_COUNT',
  ];
  const bits = [
    ...Object.entries(protocol.NAMESPACE_BITS).map(([name, bit]) => [`namespace_${name}`, bit]),
    ...Object.entries(protocol.MOUNT_BITS).map(([name, bit]) => [`mount_${name}`, bit]),
  ];
  return anonymousEnum([...names.map((name) => [name, protocol[name]]), ...bits]);
}

function frameCodes({ name, frames }) {
  return anonymousEnum(
    Object.entries(frames).map(([type, frame]) => [`${name}_${type}`, frame.code]),
  );
}

function errorCodes(std) {
  const lines = Object.keys(std.ERROR_CODES).map((code) => {
    return `#define DSEC_ERROR_${upper(code)} "${code}"`;
  });
  return `${lines.join('\n')}\n`;
}

function structure(message) {
  const choices = message.fields
    .filter((field) => field.kind === 'choice')
    .flatMap((field) =>
      field.values.map((value, i) => [`${message.name}_${field.name}_${value}`, i]),
    );
  const members = message.fields.map((field) => {
    const type = field.kind === 'struct' ? `struct ${symbol(field.message)}` : TYPES[field.kind];
    return `\t${type} ${snake(field.name)};`;
  });
  const present = message.fields
    .map((field, i) => [field, i])
    .filter(([field]) => field.optional)
    .map(([field, i]) => `\tDSEC_${upper(message.name)}_HAS_${upper(field.name)} = 1u << ${i},`);
  if (message.fields.length > 32) throw new Error(`${message.name} has more than 32 fields`);
  return [
    choices.length > 0 ? anonymousEnum(choices) : '',
    present.length > 0 ? `enum {\n${present.join('\n')}\n};\n` : '',
    `struct ${symbol(message)} {\n\tuint32_t present;\n${members.join('\n')}\n};\n`,
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function fieldTable(message) {
  const name = symbol(message);
  const rows = message.fields.map((field) => {
    const parts = [
      `.name = "${field.name}"`,
      `.tag = ${field.tag}`,
      `.offset = offsetof(struct ${name}, ${snake(field.name)})`,
      `.kind = DSEC_KIND_${KINDS[field.kind] ?? field.kind.toUpperCase()}`,
      `.optional = ${field.optional}`,
      `.min = INT64_C(${field.min})`,
      `.max = INT64_C(${field.max})`,
      `.bytes_max = ${field.bytesMax}`,
      field.item ? `.item_bytes_max = ${field.item.bytesMax}` : '',
      field.message ? `.message = &${symbol(field.message)}` : '',
    ];
    return row(parts);
  });
  const table =
    rows.length > 0
      ? `static const struct dsec_field ${name}_fields[] = {\n${rows.join('\n')}\n};\n`
      : '';
  return `${table}
const struct dsec_message ${name} = {
\t.name = "${message.name}",
\t.fields = ${rows.length > 0 ? `${name}_fields` : 'NULL'},
\t.field_count = ${rows.length},
\t.size = sizeof(struct ${name}),
\t.bytes_max = ${message.bytesMax},
};
`;
}

function frameTable({ name, frames }, protocol) {
  const rows = Object.entries(frames).map(([type, frame]) => {
    const parts = [
      `.name = "${type}"`,
      `.code = DSEC_${upper(name)}_${upper(type)}`,
      `.from = ${SIDES[frame.from]}`,
      `.scope = DSEC_SCOPE_${upper(frame.scope)}`,
      `.payload_bytes_max = ${protocol.payloadBytesMax(frame)}`,
      frame.message ? `.message = &${symbol(frame.message)}` : '',
    ];
    return row(parts);
  });
  return `static const struct dsec_frame_type ${name}_types[] = {
${rows.join('\n')}
};

const struct dsec_protocol dsec_${name}_protocol = {
\t.name = "${name}",
\t.types = ${name}_types,
\t.type_count = ${rows.length},
};
`;
}

/** One initialiser of a table, broken into lines of at most 100 columns. */
function row(parts) {
  const lines = [''];
  for (const part of parts.filter((text) => text !== '')) {
    const line = lines.at(-1);
    if (line !== '' && line.length + part.length > 80) lines.push(part);
    else lines[lines.length - 1] = line === '' ? part : `${line}, ${part}`;
  }
  return `\t{ ${lines.join(',\n\t  ')} },`;
}

function anonymousEnum(entries) {
  return `enum {\n${entries.map(([name, value]) => `\tDSEC_${upper(name)} = ${value},`).join('\n')}\n};\n`;
}

/** Names the structure (`struct dsec_msg_x`) and its description (`dsec_msg_x`). */
const symbol = (message) => `dsec_msg_${snake(message.name)}`;
const snake = (name) => name.replaceAll('-', '_').replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
const upper = (name) => (name === name.toUpperCase() ? name : snake(name).toUpperCase());
