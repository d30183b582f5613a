package coap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/ikernels/coapjwt"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// A tenant has a guard of its own namespace. All requests to it are forged, so that none gets farther than to the guard.
type tenant struct {
	secret
	socket net.PacketConn // stands for a server, which a guard must have
	meter  *demux.Meter
	guard  *coapjwt.Guard
	forged gen.Datagram
}

// newTenant attaches the guard of the tenant of a number, from 1 on, at a port of its own behind a pair that all tenants have together.
func newTenant(p *link.Pair, number int, claims jwt.MapClaims, shared *demux.Demux, l *limits.Limits) (t *tenant, err error) {
	t = &tenant{forged: gen.Datagram{Port: port + uint16(number)}, meter: demux.NewMeter(uint32(number), l)}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.secret, err = newSecret(); err != nil {
		return t, err
	}
	if t.forged.Payload, err = request(newKey(), claims); err != nil {
		return t, err
	}
	if err := p.In(func() (err error) {
		t.socket, err = net.ListenPacket("udp", netip.AddrPortFrom(p.Peer.Addr, t.forged.Port).String())
		return err
	}); err != nil {
		return t, err
	}
	t.guard, err = t.attach(p, demux.Server{Port: t.forged.Port, Demux: shared, Meter: t.meter})
	return t, err
}

func (t *tenant) close() error {
	var errs []error
	if t.guard != nil {
		errs = append(errs, t.guard.Close())
	}
	errs = append(errs, t.meter.Close())
	if t.socket != nil {
		errs = append(errs, t.socket.Close())
	}
	return errors.Join(append(errs, t.remove())...)
}

// refused is how many forged requests the guard has dropped. While a load changes, a frame may have parts of two requests, so a few others do not matter.
func (t *tenant) refused() (float64, error) {
	all, err := t.guard.Counters()
	var forged, others uint64
	for _, c := range all {
		if c.Name == "dropped_signature" {
			forged = c.Value
		} else {
			others += c.Value
		}
	}
	if others > 100+forged/100 {
		return 0, errors.Join(err, fmt.Errorf("the guard at port %d takes %d forged requests for others", t.forged.Port, others))
	}
	return float64(forged), err
}
