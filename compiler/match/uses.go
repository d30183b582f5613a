package match

import "strings"

// Uses are the identifiers in a lambda's C: what they do not name, the lambda does not touch.
type Uses map[string]bool

// Add notes the identifiers in a C source, outside of comments, strings and character constants.
func (u Uses) Add(source string) {
	for source != "" {
		switch {
		case strings.HasPrefix(source, "//"):
			source = after(source, "\n")
		case strings.HasPrefix(source, "/*"):
			source = after(source[2:], "*/")
		case source[0] == '"' || source[0] == '\'':
			source = afterQuoted(source)
		case isLetter(source[0]):
			n := 1
			for n < len(source) && (isLetter(source[n]) || source[n] >= '0' && source[n] <= '9') {
				n++
			}
			u[source[:n]] = true
			source = source[n:]
		default:
			source = source[1:]
		}
	}
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func after(s, end string) string {
	_, rest, _ := strings.Cut(s, end)
	return rest
}

func afterQuoted(s string) string {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return s[i+1:]
		}
	}
	return ""
}

// header tells whether the lambda may read and write the header's fields.
func (u Uses) header(h *Header) bool {
	return u["pif_plugin_hdr_get_"+h.Name] || u["hdr_get_"+h.Name]
}

// validity tells whether the lambda may add or remove the header.
func (u Uses) validity(h *Header) bool {
	return u["pif_plugin_hdr_"+h.Name+"_add"] || u["pif_plugin_hdr_"+h.Name+"_remove"]
}

// metadata tells whether the lambda may read (or write) the field.
func (u Uses) metadata(f *Field, verb string) bool {
	accessor := "pif_plugin_meta_" + verb + "__" + f.Header.Name + "__" + f.Name
	if u[accessor] {
		return true
	}
	for i := range f.Words() {
		if u[accessor+"__"+string(rune('0'+i%10))] {
			return true
		}
	}
	return false
}
