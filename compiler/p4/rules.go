package p4

import (
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/compiler/match"
)

// maxTableRules bounds the rules of a table. All comparisons of a packet are compiled, and walked by the verifier.
const maxTableRules = 2048

// ReadRules reads a rules file (.p4cfg) into the program's tables. The error joins all *Errors that were found. Rules for tables that the
// program does not have change nothing: unknown joins the messages about them.
func ReadRules(name string, data []byte, program *match.Program) (unknown, err error) {
	r := &ruleReader{program: program}
	if root, ok := parseJSON(name, data, &r.errors); ok {
		r.file(root)
	}
	return r.unknown.err(), r.errors.err()
}

type ruleReader struct {
	errors, unknown errorList
	program         *match.Program
}

// object calls the function for each of the object's keys, and reports keys without a function.
func (r *ruleReader) object(n node, what string, keys map[string]func(node)) {
	if n.kind != nodeObject {
		r.errors.add(n.position, "expected an object as %s, found %v", what, n.kind)
		return
	}
	for _, e := range n.fields {
		if f := keys[e.key]; f != nil {
			f(e.value)
		} else {
			r.errors.add(e.position, "unknown key %q in %s: expected %s", e.key, what, quoted(sortedKeys(keys)...))
		}
	}
}

func (r *ruleReader) text(n node, what string) (string, bool) {
	if n.kind != nodeText {
		r.errors.add(n.position, "expected a string as %s, found %v", what, n.kind)
	}
	return n.text, n.kind == nodeText
}

func (r *ruleReader) file(root node) {
	tables := map[string]*match.Table{}
	for _, t := range r.program.Tables {
		tables[t.Name] = t
	}
	r.object(root, "a rules file", map[string]func(node){"tables": func(n node) {
		if n.kind != nodeObject {
			r.errors.add(n.position, "expected an object as \"tables\", found %v", n.kind)
			return
		}
		for _, e := range n.fields {
			if t := tables[e.key]; t != nil {
				r.table(e.value, t)
			} else {
				r.unknown.add(e.position, "the program has no table %q: expected %s", e.key, quoted(sortedKeys(tables)...))
			}
		}
	}})
}

func (r *ruleReader) table(n node, t *match.Table) {
	r.object(n, "a table's rules", map[string]func(node){
		"default_rule": func(n node) {
			_, call, _ := r.rule(n, t, true)
			t.Default = call
		},
		"rules": func(n node) {
			if n.kind != nodeArray {
				r.errors.add(n.position, "expected an array as \"rules\", found %v", n.kind)
				return
			}
			if len(n.items) > maxTableRules {
				r.errors.add(n.position, "table %q has %d rules, and may have %d, as each becomes a comparison: keep large sets in the lambda's memory, and search them there",
					t.Name, len(n.items), maxTableRules)
				return
			}
			for _, item := range n.items {
				if rule, call, ok := r.rule(item, t, false); ok {
					rule.Call = *call
					t.Rules = append(t.Rules, rule)
				}
			}
			r.order(n, t)
		},
	})
}

// rule reads a rule of the table.
func (r *ruleReader) rule(n node, t *match.Table, dflt bool) (match.Rule, *match.Call, bool) {
	var rule match.Rule
	var call *match.Call
	matched := len(t.Keys) == 0
	before := len(r.errors)
	keys := map[string]func(node){
		"name": func(n node) { rule.Name, _ = r.text(n, "a rule's name") },
		"action": func(n node) {
			call = r.action(n, t)
		},
	}
	if !dflt {
		keys["match"] = func(n node) {
			matched = true
			rule.Values = r.match(n, t)
		}
	}
	r.object(n, "a rule", keys)
	if len(r.errors) > before {
		return rule, nil, false
	}
	if call == nil {
		r.errors.add(n.position, "the rule has no \"action\"")
	}
	if !dflt && !matched {
		r.errors.add(n.position, "the rule has no \"match\"")
	}
	return rule, call, len(r.errors) == before
}

func (r *ruleReader) action(n node, t *match.Table) *match.Call {
	var found *match.Action
	var data *node
	named := false
	r.object(n, "an action", map[string]func(node){
		"type": func(n node) {
			named = true
			text, ok := r.text(n, "an action's type")
			if !ok {
				return
			}
			var names []string
			for _, a := range t.Actions {
				if names = append(names, a.Name); a.Name == text {
					found = a
				}
			}
			if found == nil {
				r.errors.add(n.position, "table %q has no action %q: expected %s", t.Name, text, quoted(names...))
			}
		},
		"data": func(n node) { data = &n },
	})
	if !named {
		r.errors.add(n.position, "the action has no \"type\"")
	}
	if found == nil {
		return nil
	}
	call := &match.Call{Action: found, Args: make([]match.Expr, len(found.Params))}
	if data != nil {
		r.data(*data, call)
	}
	for i, p := range found.Params {
		if call.Args[i] == nil {
			r.errors.add(n.position, "action %q needs a value for %q in its \"data\"", found.Name, p)
		}
	}
	return call
}

func (r *ruleReader) data(n node, call *match.Call) {
	keys := map[string]func(node){}
	for i, p := range call.Action.Params {
		keys[p] = func(n node) {
			r.object(n, "a parameter", map[string]func(node){"value": func(n node) {
				call.Args[i] = match.Num(0) // present, even if its value is wrong
				if v, ok := r.value(n, 0); ok {
					if sendsTo(call.Action, i) && !match.IsPort(v) {
						r.errors.add(n.position, "%q is not a port: packets go to p0, the wire, or v0.0 to v3.63, the host; drop() drops them", n.text)
					}
					call.Args[i] = match.Const{Value: v}
				}
			}})
		}
	}
	r.object(n, "the data of action "+call.Action.Name, keys)
}

// sendsTo says whether the action sends packets to the port that its parameter i names.
func sendsTo(a *match.Action, i int) bool {
	return slices.ContainsFunc(a.Body, func(s match.Stmt) bool {
		assign, ok := s.(match.Assign)
		if !ok || assign.To.Header.Name != match.StandardMetadata || assign.To.Name != "egress_spec" {
			return false
		}
		arg, ok := assign.From.(match.Arg)
		return ok && arg.Index == i
	})
}

// match reads the values of a rule's keys.
func (r *ruleReader) match(n node, t *match.Table) []match.Masked {
	values := make([]match.Masked, len(t.Keys))
	keys := map[string]func(node){}
	for i, k := range t.Keys {
		keys[keyName(k)] = func(n node) { values[i] = r.key(n, k) }
	}
	r.object(n, "a match of table "+t.Name, keys)
	for i, k := range t.Keys {
		if values[i].Value != nil {
			continue
		}
		if k.Kind == match.Ternary || k.Kind == match.LPM {
			values[i] = match.Masked{Value: new(big.Int), Mask: new(big.Int)} // anything
			continue
		}
		r.errors.add(n.position, "the match has no value for %q", keyName(k))
	}
	return values
}

// keyName is how rules name a key.
func keyName(k match.Key) string {
	if k.Kind == match.Valid {
		return k.Header.Name
	}
	x := k.Expr
	if b, ok := x.(match.Binary); ok {
		x = b.X // a key with a mask
	}
	f := x.(match.Ref).Field
	return f.Header.Name + "." + f.Name
}

func keyWidth(k match.Key) int {
	x := k.Expr
	if b, ok := x.(match.Binary); ok {
		x = b.X
	}
	return x.(match.Ref).Field.Width
}

var validity01 = map[string]int64{"1": 1, "true": 1, "valid": 1, "0": 0, "false": 0, "invalid": 0}

func (r *ruleReader) key(n node, k match.Key) match.Masked {
	var out match.Masked
	keys := map[string]func(node){"value": func(n node) {
		out.Value = new(big.Int) // present, even if it is wrong
		text, ok := r.text(n, "a value")
		if !ok {
			return
		}
		if k.Kind == match.Valid {
			v, known := validity01[text]
			if !known {
				r.errors.add(n.position, "%q does not say whether a header is valid: expected %s", text, quoted("true", "false"))
			}
			out.Value = big.NewInt(v)
			return
		}
		if address, length, prefix := strings.Cut(text, "/"); prefix && k.Kind == match.LPM {
			out.Mask = r.prefix(n.position, length, keyWidth(k))
			n.text = address
		}
		if v, ok := r.value(n, keyWidth(k)); ok {
			out.Value = v
		}
	}}
	if k.Kind == match.Ternary {
		keys["mask"] = func(n node) {
			if v, ok := r.value(n, keyWidth(k)); ok {
				out.Mask = v
			}
		}
	}
	r.object(n, "a value of "+keyName(k), keys)
	return out
}

// prefix returns the mask for a prefix length.
func (r *ruleReader) prefix(at position, text string, width int) *big.Int {
	length, err := strconv.Atoi(text)
	if err != nil || length < 0 || length > width {
		r.errors.add(at, "%q is not the length of a prefix: expected 0 to %d", text, width)
		return new(big.Int)
	}
	ones := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(length)), big.NewInt(1))
	return ones.Lsh(ones, uint(width-length))
}

var (
	wirePort = regexp.MustCompile(`^p(\d{1,2})$`)
	hostPort = regexp.MustCompile(`^v([0-3])\.(\d{1,2})$`)
	mac      = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})+$`)
)

// value reads a number, a port, an IPv4 address or bytes with colons. Width 0 means any width.
func (r *ruleReader) value(n node, width int) (*big.Int, bool) {
	text, ok := r.text(n, "a value")
	if !ok {
		return nil, false
	}
	v, ok := parseValue(text)
	if !ok {
		r.errors.add(n.position, "%q is not a value: expected a number (10, 0x1f), a port (p0 is the wire, v0.0 the host), an IPv4 address or a MAC address", text)
		return nil, false
	}
	if width > 0 && v.BitLen() > width {
		r.errors.add(n.position, "%q does not fit into %d bits", text, width)
		return nil, false
	}
	return v, true
}

func parseValue(text string) (*big.Int, bool) {
	if v, ok := parseNumber(text); ok {
		return v, true
	}
	if m := wirePort.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return big.NewInt(int64(match.PortWire + n)), true
	}
	if m := hostPort.FindStringSubmatch(text); m != nil {
		slot, _ := strconv.Atoi(m[1])
		n, _ := strconv.Atoi(m[2])
		return big.NewInt(int64(match.PortHost + slot*match.HostPortsEach + n)), n < match.HostPortsEach
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
		return new(big.Int).SetBytes(addr.AsSlice()), true
	}
	if mac.MatchString(text) && len(text) < maxNumberBits/4 {
		return new(big.Int).SetString(strings.ReplaceAll(text, ":", ""), 16)
	}
	return nil, false
}

// order puts longer prefixes first, and reports rules that can never match, as an equal one precedes them.
func (r *ruleReader) order(n node, t *match.Table) {
	for i, k := range t.Keys {
		if k.Kind != match.LPM {
			continue
		}
		length := func(rule match.Rule) int {
			m := rule.Values[i].Mask
			if m == nil {
				return keyWidth(k)
			}
			return ones(m)
		}
		slices.SortStableFunc(t.Rules, func(a, b match.Rule) int { return length(b) - length(a) })
	}
	seen := map[string]string{}
	for _, rule := range t.Rules {
		var key strings.Builder
		for _, v := range rule.Values {
			key.WriteString(v.Value.Text(16) + "/")
			if v.Mask != nil {
				key.WriteString(v.Mask.Text(16))
			}
			key.WriteByte(' ')
		}
		if first, twice := seen[key.String()]; twice {
			r.errors.add(n.position, "rules %q and %q of table %q match the same packets", first, rule.Name, t.Name)
		}
		seen[key.String()] = rule.Name
	}
}

func ones(v *big.Int) int {
	n := 0
	for i := range v.BitLen() {
		n += int(v.Bit(i))
	}
	return n
}
