package p4_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The listings of "λ-NIC: Interactive Serverless Compute on Programmable SmartNICs", section 4.1, without line numbers.
const (
	listing1 = `int function_name(EXTRACTED_HEADERS_T *headers,
                  MATCH_DATA_T *match_data)
{
    // local/global memory and objects.
    return return_value;
}
`
	listing2 = `#define MEM_PER_LAMBDA 20
uint8_t memory[MEM_PER_LAMBDA * 3];
int web_server(EXTRACTED_HEADERS_T *headers,
               MATCH_DATA_T *match_data)
{
    serverHdr_T *serverHdr =
        hdr_get_serverHdr(headers);
    memcpy(serverHdr->address, memory,
           MEM_PER_LAMBDA);
    return RETURN_FORWARD;
}
`
	listing3 = `control ingress {
    if (valid(lambda_hdr)) {
        if (lambda_hdr.wId == WEB_SERVER_ID) {
            apply(web_server);
            apply(return_web_server_results);
        } else if (lambda_hdr.wId == OTHER_LAMBDA_ID) {
            apply(other_lambda);
            apply(return_other_lambda_results);
        }
    } else { apply(send_pkt_to_host); }
}
`
)

// The test's program contains the listings as printed, line by line.
func TestListingsArePrinted(t *testing.T) {
	for file, listings := range map[string][]string{"web_server.c": {listing1, listing2}, "match.p4": {listing3}} {
		text, err := os.ReadFile(filepath.Join("testdata/listings", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, listing := range listings {
			if !strings.Contains("\n"+string(text), "\n"+listing) {
				t.Errorf("%s does not have, as it is printed:\n%s", file, listing)
			}
		}
	}
}

// They answer on the wire: a server's address is 160 bits, as listing 2 copies 20 bytes.
func TestListings(t *testing.T) {
	c := program(t, "listings")
	content := []byte("twenty bytes of text")
	memory := append(append([]byte{}, content...), make([]byte, 40)...)
	if err := c.Variables["memory"].Set(memory); err != nil {
		t.Fatal(err)
	}
	request := func(id byte) []byte {
		return datagram(t, 5000, jobPort, append([]byte{0, 0, 0, id}, make([]byte, 20)...))
	}

	verdict, out := run(t, c, "lambda", request(1))
	wantVerdict(t, verdict, xdpTX)
	p := dissect(t, out)
	wantTurned(t, p, jobPort, 5000)
	if !bytes.Equal(p.payload[4:], content) {
		t.Errorf("address %q, want %q", p.payload[4:], content)
	}
	verdict, out = run(t, c, "lambda", request(2))
	wantVerdict(t, verdict, xdpTX)
	if p := dissect(t, out); !bytes.Equal(p.payload[4:], make([]byte, 20)) {
		t.Errorf("the other lambda changed the address: %x", p.payload)
	}
	verdict, _ = run(t, c, "lambda", datagram(t, 5000, 53, nil))
	wantVerdict(t, verdict, xdpPass)
	// Listing 1 returns an object that persists across runs.
	if err := c.Variables["return_value"].Set(int32(0)); err != nil { // RETURN_DROP
		t.Fatal(err)
	}
	verdict, _ = run(t, c, "lambda", request(2))
	wantVerdict(t, verdict, xdpDrop)
	// The listing sends nothing where the ID is unknown: no port was chosen.
	verdict, _ = run(t, c, "lambda", request(7))
	wantVerdict(t, verdict, xdpDrop)
}
