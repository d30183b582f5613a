package p4_test

import (
	"bytes"
	"testing"
)

// What the lambda's C may do with headers and metadata.

const accessProgram = `
header_type eth_t { fields { dst : 48; src : 48; type_ : 16; } }
header_type h_t { fields { kind : 8; wide : 72; odd : 5; rest : 3; } }
header_type more_t { fields { x : 16; } }
header_type m_t { fields { wide : 48; narrow : 8; } }
header eth_t eth;
header h_t h;
header more_t more;
metadata m_t m;
primitive_action work();
parser start { extract(eth); extract(h); return select (h.kind) { 3 : with_more; default : ingress; } }
parser with_more { extract(more); return ingress; }
action go() {
	modify_field(m.narrow, 0x1ff);
	modify_field(m.wide, eth.src);
	modify_field(standard_metadata.egress_spec, 0);
	work();
	modify_field(eth.dst, m.wide);
}
table t { actions { go; } default_action : go; }
control ingress { apply(t); }
`

const accessLambda = `
volatile __export __emem uint32_t seen[4];
__declspec(emem export aligned(64)) uint8_t store[64];

static __mem uint8_t *place(__lmem uint32_t *index, __mem void *array)
{
	return (__mem uint8_t *)array + (*index & 63);
}

int pif_plugin_work(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_h_T *h = pif_plugin_hdr_get_h(headers);
	PIF_PLUGIN_more_T *more = pif_plugin_hdr_get_more(headers);
	__lmem uint32_t index = 5;

	seen[0]++;
	*place(&index, store) = 7;
	switch (h->kind) {
	case 0: /* words, and bits that do not fit */
		h->__wide_0 = 0x01020304;
		h->__wide_2 = 0x1ff;
		h->odd = 0x3f;
		break;
	case 1: /* bytes */
		memcpy(h->wide, "ninebytes", 9);
		break;
	case 2: /* a header more */
		pif_plugin_hdr_more_add(headers);
		more->x = 0xabcd;
		break;
	case 3: /* and one less */
		if (pif_plugin_hdr_more_present(headers))
			pif_plugin_hdr_more_remove(headers);
		break;
	case 4: /* metadata */
		pif_plugin_meta_set__m__wide__0(headers, pif_plugin_meta_get__m__narrow(headers));
		pif_plugin_meta_set__m__wide__1(headers, 0x12345);
		break;
	default:
		return PIF_PLUGIN_RETURN_DROP;
	}
	return PIF_PLUGIN_RETURN_FORWARD;
}
`

func TestLambdaAccess(t *testing.T) {
	c := source(t, accessProgram, `{}`, "#include <pif_plugin_metadata.h>\n#include <string.h>\n"+accessLambda)
	addresses := []byte{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 0x12, 0x34}
	swapped := []byte{11, 12, 13, 14, 15, 16, 11, 12, 13, 14, 15, 16, 0x12, 0x34}
	body := []byte{20, 21, 22, 23, 24, 25, 26, 27, 28, 0b01010_110}
	tail := bytes.Repeat([]byte{0xee}, 40)
	frame := func(eth []byte, kind byte, parts ...[]byte) []byte {
		return append(append(bytes.Clone(eth), kind), bytes.Join(append(parts, tail), nil)...)
	}
	for name, test := range map[string]struct{ in, want []byte }{
		"words":             {frame(addresses, 0, body), frame(swapped, 0, []byte{1, 2, 3, 4, 24, 25, 26, 27, 0xff, 0b11111_110})},
		"bytes":             {frame(addresses, 1, body), frame(swapped, 1, []byte("ninebytes"), body[9:])},
		"a header more":     {frame(addresses, 2, body), frame(swapped, 2, body, []byte{0xab, 0xcd})},
		"a header less":     {frame(addresses, 3, body, []byte{9, 9}), frame(swapped, 3, body)},
		"metadata":          {frame(addresses, 4, body), frame(append([]byte{0, 0, 0, 0xff, 0x23, 0x45}, addresses[6:]...), 4, body)},
		"dropped by lambda": {frame(addresses, 5, body), nil},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, out := run(t, c, "lambda", test.in)
			if test.want == nil {
				wantVerdict(t, verdict, xdpDrop)
				return
			}
			wantVerdict(t, verdict, xdpTX)
			if !bytes.Equal(out, test.want) {
				t.Errorf("got  %x\nwant %x", out, test.want)
			}
		})
	}
	var stored [64]byte
	if err := c.Variables["store"].Get(&stored); err != nil || stored[5] != 7 {
		t.Errorf("stored %v, %v", stored, err)
	}
}
