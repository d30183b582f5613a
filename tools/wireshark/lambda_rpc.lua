-- SPDX-License-Identifier: Apache-2.0
-- Wireshark's dissector of λ-RPC (docs/protocol.md). README.md says how to install it.

local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local wire = dofile(here .. "lambda_rpc_wire.lua")

local rpc = Proto("lambda_rpc", "λ-RPC")
rpc.prefs.reassemble = Pref.bool("Reassemble messages of several packets", true, "Put requests and replies together")
rpc.prefs.most = Pref.uint("Longest message to reassemble, in MiB", 16, "Longer messages are shown packet by packet")

-- Fields ---------------------------------------------------------------------------------------------------------------------

local TYPE = {} -- numbers by name
for number, name in pairs(wire.type) do
	TYPE[name] = number
end
local DONE, RESEND = 8, 16
for number, name in pairs(wire.flag) do
	DONE = name == "done" and number or DONE
	RESEND = name == "resend" and number or RESEND
end

local labels = {
	magic = "Magic", version = "Version", type = "Type", flags = "Flags", code = "Code", length = "Length",
	workload = "Workload", revision = "Revision", request = "Request ID", index = "Packet", count = "Packets of message",
	message_len = "Length of message", method = "Method", deadline_us = "Deadline (µs)", client = "Client",
	sequence = "Sequence", grant = "Granted packets", tag = "Tag",
}
local hexadecimal = { magic = true, flags = true, workload = true, request = true, client = true, tag = true }
local constructors = { ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32, [8] = ProtoField.uint64 }

local F = {
	error = ProtoField.uint8("lambda_rpc.error", "Error", base.DEC, wire.code),
	status = ProtoField.uint8("lambda_rpc.status", "Status", base.DEC, wire.status),
	payload = ProtoField.bytes("lambda_rpc.payload", "Payload"),
	padding = ProtoField.bytes("lambda_rpc.padding", "Padding"),
	bitmap = ProtoField.uint64("lambda_rpc.ack.bitmap", "Bitmap", base.HEX),
	arrived = ProtoField.string("lambda_rpc.ack.arrived", "Packets that arrived"),
	missing = ProtoField.string("lambda_rpc.ack.missing", "Packets that did not"),
	request_in = ProtoField.framenum("lambda_rpc.request_in", "Request in", base.NONE, frametype.REQUEST),
	response_in = ProtoField.framenum("lambda_rpc.response_in", "Response in", base.NONE, frametype.RESPONSE),
	response_time = ProtoField.relative_time("lambda_rpc.response_time", "Time since request"),
	call_in = ProtoField.framenum("lambda_rpc.call_in", "Call began in"),
	call_time = ProtoField.relative_time("lambda_rpc.call_time", "Time since call began"),
	resend_of = ProtoField.framenum("lambda_rpc.resend_of", "First sent in", base.NONE, frametype.RETRANS_PREV),
	reassembled_in = ProtoField.framenum("lambda_rpc.reassembled_in", "Reassembled in"),
	message = ProtoField.bytes("lambda_rpc.message", "Message"),
}
for _, f in ipairs(wire.fields) do
	local shown = hexadecimal[f.name] and base.HEX or base.DEC
	F[f.name] = constructors[f.size]("lambda_rpc." .. f.name, labels[f.name] or f.name, shown, f.name == "type" and wire.type or nil)
end

local flags = {} -- in order of their bits
for bit_, name in pairs(wire.flag) do
	local abbreviation = "lambda_rpc.flags." .. name:gsub(" ", "_")
	table.insert(flags, { bit = bit_, name = name, field = ProtoField.bool(abbreviation, name, 8, nil, bit_) })
end
table.sort(flags, function(a, b) return a.bit < b.bit end)

local all = {}
for _, field in pairs(F) do
	table.insert(all, field)
end
for _, flag in ipairs(flags) do
	table.insert(all, flag.field)
end
rpc.fields = all

local E = {
	malformed = ProtoExpert.new("lambda_rpc.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR),
	unknown = ProtoExpert.new("lambda_rpc.unknown", "Not of this version", expert.group.PROTOCOL, expert.severity.WARN),
	resend = ProtoExpert.new("lambda_rpc.resend", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE),
	repeated = ProtoExpert.new("lambda_rpc.repeated", "Answered again", expert.group.SEQUENCE, expert.severity.NOTE),
	lost = ProtoExpert.new("lambda_rpc.lost", "Packets have not arrived", expert.group.SEQUENCE, expert.severity.NOTE),
	refused = ProtoExpert.new("lambda_rpc.refused", "Error", expert.group.RESPONSE_CODE, expert.severity.WARN),
	failed = ProtoExpert.new("lambda_rpc.failed", "Status is not ok", expert.group.RESPONSE_CODE, expert.severity.NOTE),
}
local experts = {}
for _, e in pairs(E) do
	table.insert(experts, e)
end
rpc.experts = experts

-- The header -----------------------------------------------------------------------------------------------------------------

local function has(bits, bit_)
	return math.floor(bits / bit_) % 2 == 1
end

-- read gives the header's fields as numbers, the two of 64 bits as UInt64.
local function read(tvb)
	local h = {}
	for _, f in ipairs(wire.fields) do
		local range = tvb(f.offset, f.size)
		h[f.name] = f.size == 8 and range:uint64() or range:uint()
	end
	return h
end

-- placement says where a packet's bytes stand in its message, or what is inconsistent (api/message.go).
local function placement(h)
	local n, total = h.length, h.message_len
	if h.index >= h.count then
		return nil, "packet index beyond count"
	elseif n > total then
		return nil, "packet longer than its message"
	elseif h.count == 1 then
		if n ~= total then
			return nil, "single packet is not the whole message"
		end
		return 0
	elseif n == 0 then
		return nil, "empty packet of several"
	end
	local offset, size = h.index * n, n
	if h.index == h.count - 1 then
		offset = total - n
		size = offset / (h.count - 1)
		if size ~= math.floor(size) or n > size then
			return nil, "last packet does not fit the others"
		end
	end
	if math.ceil(total / size) ~= h.count then
		return nil, "wrong number of packets"
	end
	return offset
end

-- wrong says what is wrong with a packet, if anything. room is what the datagram has behind the header.
local function wrong(h, room)
	if not wire.type[h.type] then
		return string.format("there is no type %d", h.type)
	elseif h.length > room then
		return string.format("length is %d, but only %d bytes follow the header", h.length, room)
	elseif h.type == TYPE.request or h.type == TYPE.response then
		local _, why = placement(h)
		return why
	elseif h.type == TYPE.pull then
		if h.count < 2 or h.index >= h.count then
			return "no such packet to pull"
		elseif h.message_len == 0 or h.message_len > room then
			return "no room for the packet that is pulled"
		end
	elseif h.type == TYPE.ack and not has(h.flags, DONE) and h.length ~= 8 then
		return "an acknowledgement without a bitmap"
	end
end

-- Calls ----------------------------------------------------------------------------------------------------------------------

local calls, frames = {}, {} -- calls by addresses, workload and request ID; what is known of a frame, by its number

function rpc.init()
	calls, frames = {}, {}
end

local function from_client(h)
	return h.type == TYPE.request or h.type == TYPE.pull or h.type == TYPE.ack and has(h.flags, DONE)
end

local function call_of(h, pinfo)
	local src = tostring(pinfo.src) .. "/" .. pinfo.src_port
	local dst = tostring(pinfo.dst) .. "/" .. pinfo.dst_port
	local ends = from_client(h) and src .. " " .. dst or dst .. " " .. src
	local key = ends .. " " .. h.workload .. " " .. h.request:tohex()
	local call = calls[key]
	if not call then
		call = { requests = {}, pulls = {}, seen = {} }
		calls[key] = call
	end
	return call
end

-- collect takes in a packet of a message. The last packet to arrive completes the message: its frame shows the whole.
local function collect(call, side, h, payload, info)
	local most = rpc.prefs.most * 1024 * 1024
	local message = call[side]
	if not rpc.prefs.reassemble or h.count < 2 or h.message_len > most or h.length > payload:len() then
		return
	end
	if not message or message.count ~= h.count or message.length ~= h.message_len then
		message = { count = h.count, length = h.message_len, parts = {}, arrived = 0 }
		call[side] = message
	end
	info.message = message
	if message.frame or message.parts[h.index + 1] then
		return
	end
	message.parts[h.index + 1] = payload(0, h.length):bytes():raw()
	message.arrived = message.arrived + 1
	if message.arrived == message.count then
		message.frame, message.data = info.number, table.concat(message.parts)
		message.parts = {}
	end
end

-- asked_by finds the packet that a server's packet answers.
local function asked_by(call, h)
	local same = call.requests[h.index]
	if h.type == TYPE.ack then
		return same
	elseif h.type == TYPE.error then
		return call.last
	elseif call.pulls[h.index] then
		return call.pulls[h.index]
	end
	local whole = call.acked or has(h.flags, DONE) or not call.count or h.count ~= call.count
	return not whole and same or call.last_request -- a whole message is answered when its last packet arrives
end

-- since turns floating-point seconds into the time between two packets.
local function since(earlier, later)
	local ns = math.floor((later - earlier) * 1e9 + 0.5)
	return NSTime.new(math.floor(ns / 1e9), ns % 1e9)
end

-- from_server links a packet with the one that it answers.
local function from_server(call, h, info)
	call.acked = call.acked or h.type == TYPE.ack
	local asked = asked_by(call, h)
	if asked then
		info.request_in, info.response_time = asked.number, since(asked.time, info.time)
		if not asked.response_in then
			asked.response_in = info.number
		end
	end
	if h.type == TYPE.response then
		info.repeats = call.seen["response" .. h.index]
		call.seen["response" .. h.index] = info.repeats or info.number
	end
end

-- by_client notes a request, a pull, or the end of a call.
local function by_client(call, h, info)
	local name = h.type .. " " .. h.index
	info.resend_of = call.seen[name]
	call.seen[name] = info.resend_of or info.number
	if h.type == TYPE.request then
		call.requests[h.index], call.last_request, call.last, call.count = info, info, info, h.count
	elseif h.type == TYPE.pull then
		call.pulls[h.index], call.last = info, info
	end
end

-- learn is done once for each frame, in their order.
local function learn(h, pinfo, payload)
	local call = call_of(h, pinfo)
	local info = { number = pinfo.number, time = pinfo.rel_ts, call = call }
	if from_client(h) then
		by_client(call, h, info)
	else
		from_server(call, h, info)
	end
	call.first = call.first or info
	if h.type == TYPE.request then
		collect(call, "up", h, payload, info)
	elseif h.type == TYPE.response then
		collect(call, "down", h, payload, info)
	end
	return info
end

-- What is shown --------------------------------------------------------------------------------------------------------------

local function show_header(tree, tvb, h)
	for _, f in ipairs(wire.fields) do
		local range = tvb(f.offset, f.size)
		local item = tree:add(F[f.name], range)
		if f.name == "flags" then
			for _, flag in ipairs(flags) do
				item:add(flag.field, range)
			end
		elseif f.name == "code" and h.type == TYPE.error then
			tree:add(F.error, range)
		elseif f.name == "code" and h.type == TYPE.response then
			tree:add(F.status, range)
		end
	end
end

-- ranges writes numbers from first on, for which f holds: "0-2,5".
local function ranges(first, n, f)
	local out, from = {}, nil
	for i = 0, n do
		local holds = i < n and f(i)
		if holds and not from then
			from = first + i
		elseif from and not holds then
			local to = first + i - 1
			table.insert(out, from == to and tostring(from) or from .. "-" .. to)
			from = nil
		end
	end
	return table.concat(out, ",")
end

local function show_bitmap(tree, payload, h)
	local low, high = payload(4, 4):uint(), payload(0, 4):uint()
	local first = h.index - h.index % 64
	local n = math.max(0, math.min(64, h.count - first))
	local function arrived(i)
		if i < 32 then
			return has(low, 2 ^ i)
		end
		return has(high, 2 ^ (i - 32))
	end
	local missing = ranges(first, n, function(i) return not arrived(i) end)
	tree:add(F.bitmap, payload(0, 8))
	tree:add(F.arrived, payload(0, 8), ranges(first, n, arrived))
	if missing ~= "" then
		tree:add(F.missing, payload(0, 8), missing)
		tree:add_proto_expert_info(E.lost, "not arrived yet: " .. missing)
	end
end

local function show_doubts(tree, h)
	local known = 0
	for _, flag in ipairs(flags) do
		known = known + flag.bit
	end
	if h.flags > known then
		tree:add_proto_expert_info(E.unknown, "unknown flags")
	end
	if h.grant ~= 0 and h.type ~= TYPE.ack then
		tree:add_proto_expert_info(E.unknown, "grant in a packet that acknowledges nothing")
	end
	if h.type == TYPE.error then
		tree:add_proto_expert_info(E.refused, "error: " .. (wire.code[h.code] or "unknown"))
	elseif h.type == TYPE.response and h.code ~= 0 then
		tree:add_proto_expert_info(E.failed, "status: " .. (wire.status[h.code] or "of the lambda's own"))
	end
	if has(h.flags, RESEND) then
		tree:add_proto_expert_info(E.resend, "sent again")
	end
end

local function generated(tree, field, value)
	if value then
		tree:add(field, value):set_generated()
	end
end

local function show_call(tree, info)
	local first = info.call.first
	generated(tree, F.request_in, info.request_in)
	generated(tree, F.response_in, info.response_in)
	generated(tree, F.response_time, info.response_time)
	if first.number ~= info.number then
		generated(tree, F.call_in, first.number)
		generated(tree, F.call_time, since(first.time, info.time))
	end
	generated(tree, F.resend_of, info.resend_of)
	if info.repeats then
		tree:add_proto_expert_info(E.repeated, "answered before in frame " .. info.repeats)
	end
end

local function show_message(tree, info, name)
	local message = info.message
	if not message or not message.frame then
		return
	end
	generated(tree, F.reassembled_in, message.frame)
	if message.frame == info.number and #message.data > 0 then
		local whole = ByteArray.new(message.data, true):tvb("Reassembled λ-RPC " .. name)
		tree:add(F.message, whole()):set_generated()
	end
end

local function title(h)
	local text = wire.type[h.type] or "type " .. h.type
	if h.type == TYPE.error then
		text = text .. ": " .. (wire.code[h.code] or h.code)
	elseif h.type == TYPE.response and h.code ~= 0 then
		text = text .. ", " .. (wire.status[h.code] or "status " .. h.code)
	end
	if h.count > 1 then
		text = string.format("%s, packet %d of %d", text, h.index, h.count)
	end
	for _, flag in ipairs(flags) do
		if has(h.flags, flag.bit) then
			text = text .. " [" .. flag.name .. "]"
		end
	end
	return string.format("%s, workload 0x%x, %d bytes", text, h.workload, h.length)
end

local function is_rpc(tvb)
	return tvb:len() >= wire.header_len and tvb(0, 2):uint() == wire.magic and tvb(2, 1):uint() == wire.version
end

function rpc.dissector(tvb, pinfo, root)
	if not is_rpc(tvb) then
		return 0
	end
	local h = read(tvb)
	local room = tvb:reported_len() - wire.header_len
	local behind = tvb:len() - wire.header_len -- a capture may have cut the packet short
	local tree = root:add(rpc, tvb(), "λ-RPC " .. title(h))
	pinfo.cols.protocol = "λ-RPC"
	pinfo.cols.info = title(h)
	show_header(tree, tvb(0, wire.header_len):tvb(), h)

	local carried = math.min(h.length, behind)
	local payload = behind > 0 and tvb(wire.header_len):tvb() or ByteArray.new():tvb("nothing")
	if carried > 0 then
		tree:add(F.payload, tvb(wire.header_len, carried))
	end
	if behind > h.length then
		tree:add(F.padding, tvb(wire.header_len + h.length))
	end
	show_doubts(tree, h)
	local why = wrong(h, room)
	if why then
		tree:add_proto_expert_info(E.malformed, why)
		return tvb:len()
	end
	if h.type == TYPE.ack and h.length == 8 and behind >= 8 then
		show_bitmap(tree, payload, h)
	end
	if not pinfo.visited then
		frames[pinfo.number] = learn(h, pinfo, payload)
	end
	local info = frames[pinfo.number]
	if info then
		show_call(tree, info)
		show_message(tree, info, wire.type[h.type])
	end
	return tvb:len()
end

-- A packet on another port is ours if it looks like λ-RPC.
local function looks_so(tvb, pinfo, root)
	if not is_rpc(tvb) or not wire.type[tvb(3, 1):uint()] then
		return false
	end
	rpc.dissector(tvb, pinfo, root)
	return true
end

DissectorTable.get("udp.port"):add(wire.port, rpc)
rpc:register_heuristic("udp", looks_so)
