"""What must happen in Redis in one step. Each script is about one key (KEYS[1]), and no other command comes in between."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script, and the name by which the server knows it once it has run it."""

    source: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", sha)


PROBE = Script("""
redis.call('SET', KEYS[1], '1')
return redis.call('DEL', KEYS[1])
""")
"""Whether the server takes writes: a replica, or one that is full, does not. Nobody sees the key."""

# What a key holds; false if it is not there. A type that Ksana never wrote is cleared away first, by those that write.
_TYPE = """
local function kind() return redis.call('TYPE', KEYS[1]).ok end
local function text() if kind() == 'string' then return redis.call('GET', KEYS[1]) end return false end
local function clear(wanted)
  local found = kind()
  if found == 'none' or found == wanted then return 0 end
  redis.call('DEL', KEYS[1])
  return 1
end
local function expire(unit, amount) redis.call(unit == 'EX' and 'EXPIRE' or 'PEXPIRE', KEYS[1], amount) end
"""

# Numbers in it are only ever compared, never written again: Lua would damage the long ones.
_DECODE = """
local shape = {lastCompletedStageIndex = 'number', completedStages = 'table', contextData = 'table', savedAt = 'string'}
local function decoded(value)
  local fine, document = pcall(cjson.decode, value)
  if not fine or type(document) ~= 'table' then return nil, nil end
  for name, wanted in pairs(shape) do
    if type(document[name]) ~= wanted then return nil, nil end
  end
  local version = document.version
  if version == nil then version = 0 end
  if type(version) ~= 'number' then return nil, nil end
  return document, version
end
"""

READ_CHECKPOINT = Script(
    # {} nothing, {sha} as the caller has it, {sha, value} otherwise, {'', type} of another type. ARGV: sha that the caller has
    _TYPE
    + """
local found = kind()
if found == 'none' then return {} end
if found ~= 'string' then return {'', found} end
local value = redis.call('GET', KEYS[1])
local sha = redis.sha1hex(value)
if sha == ARGV[1] then return {sha} end
return {sha, value}
"""
)
"""A value travels only if it is not the one that the caller has already: a cache that is asked before every use."""

PUT_CHECKPOINT = Script(
    # {1, repaired} written; {0, 0, value} refused for that. ARGV: value, version, unit, ttl, sha that may be replaced anyway
    _TYPE
    + _DECODE
    + """
local repaired = clear('string')
local value = text()
if value then
  local document, version = decoded(value)
  if document == nil or redis.sha1hex(value) == ARGV[5] then
    repaired = 1
  elseif version >= tonumber(ARGV[2]) then
    return {0, 0, value}
  end
end
redis.call('SET', KEYS[1], ARGV[1], ARGV[3], ARGV[4])
return {1, repaired}
"""
)
"""A version is never followed by the same or a smaller one, unless what has it cannot be read."""

APPEND_STAGE = Script(
    # 1 written, 0 refused. ARGV: stage, index, context as JSON, savedAt, version, unit, ttl
    _TYPE
    + _DECODE
    + r"""
local value = text()
if not value then return 0 end
local document, version = decoded(value)
if document == nil or version ~= tonumber(ARGV[5]) - 1 then return 0 end
local stages = document.completedStages
if #stages ~= tonumber(ARGV[2]) then return 0 end
local short = {['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t'}
local function escaped(char) return short[char] or string.format('\\u%04x', string.byte(char)) end
local function quoted(name) return '"' .. string.gsub(name, '[%z\1-\31"\\]', escaped) .. '"' end
local names = {}
for position, name in ipairs(stages) do
  if type(name) ~= 'string' then return 0 end
  names[position] = quoted(name)
end
names[#names + 1] = quoted(ARGV[1])
local longer = '{"lastCompletedStageIndex":' .. ARGV[2]
  .. ',"completedStages":[' .. table.concat(names, ',') .. ']'
  .. ',"contextData":' .. ARGV[3]
  .. ',"savedAt":"' .. ARGV[4] .. '","version":' .. ARGV[5] .. '}'
redis.call('SET', KEYS[1], longer, ARGV[6], ARGV[7])
return 1
"""
)
"""What is written is, byte for byte, what putting the whole would have written; nothing, unless it follows what is there."""

SAVE_FIELDS = Script(
    # repaired. ARGV: updatedAt, unit, ttl, then fields and values
    _TYPE
    + """
local function instant(stamp)
  local seconds, fraction = string.match(stamp, '^(%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d)%.?(%d*)')
  if not seconds then return '' end
  return seconds .. string.sub(fraction .. '000000000', 1, 9)
end
local repaired = clear('hash')
local stored = redis.call('HGET', KEYS[1], 'updatedAt')
if stored and instant(stored) > instant(ARGV[1]) then return repaired end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
-- Only if others are there: a server without memory refuses a script at its first write, unless that is a DEL.
if redis.call('HLEN', KEYS[1]) ~= (#ARGV - 3) / 2 then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], unpack(ARGV, 4))
end
expire(ARGV[2], ARGV[3])
return repaired
"""
)
"""A hash has exactly these fields and always an end, and is never followed by one that was updated before it."""

PUT_TEXT = Script(
    # repaired. ARGV: value, unit, ttl
    _TYPE
    + """
local repaired = clear('string')
redis.call('SET', KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return repaired
"""
)
"""Whatever was there is replaced; what was of another type is told."""

REMOVE_TEXT = Script(
    # 1 removed, 0 not. ARGV: value
    _TYPE
    + """
if clear('string') == 1 or text() ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""
)
"""Nothing is removed but that value, and what Ksana never wrote there: nobody may come after the one that lets go."""

ACQUIRE_LOCK = Script(
    # {acquired, repaired}. ARGV: task, unit, ttl
    _TYPE
    + """
local repaired = clear('string')
if redis.call('SET', KEYS[1], ARGV[1], 'NX', ARGV[2], ARGV[3]) then return {1, repaired} end
if text() ~= ARGV[1] then return {0, repaired} end
expire(ARGV[2], ARGV[3])
return {1, repaired}
"""
)
"""One task has it; who has it already has it anew."""

RENEW_LOCK = Script(
    # 1 renewed, 0 not. ARGV: task, unit, ttl
    _TYPE
    + """
if text() ~= ARGV[1] then return 0 end
expire(ARGV[2], ARGV[3])
return 1
"""
)
"""Nobody's lock but the task's own gets a new end."""
