package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// SecretLen is the length of a key's secret, in bytes: that of SipHash.
const SecretLen = 16

// TaggedHeaderLen is how much of a header its tag covers, in bytes: all before the tag.
const TaggedHeaderLen = RPCHeaderLen - 8

// keyPrefix marks the text of a key, for people and for tools that look for secrets.
const keyPrefix = "lnk1"

// ErrKey says that a text is no key.
var ErrKey = errors.New("not a key: it is one line, lnk1:NAMESPACE:NUMBER:SECRET, as `lambdanic namespace key add` writes it")

// A Key is a secret of a namespace, by which its clients tag their packets (docs/protocol.md). Only MarshalText reveals the secret.
type Key struct {
	Namespace string
	Number    uint32 // from 1; a namespace has at most one with an even and one with an odd number
	Secret    [SecretLen]byte
}

// ParseKey reads a key's text, with white space around it.
func ParseKey(text string) (k Key, err error) {
	return k, k.UnmarshalText([]byte(text))
}

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s:%s:%d:%s", keyPrefix, k.Namespace, k.Number, base64.RawURLEncoding.EncodeToString(k.Secret[:])), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error is ErrKey, and shows nothing of the text.
func (k *Key) UnmarshalText(text []byte) error {
	parts := strings.Split(strings.TrimSpace(string(text)), ":")
	if len(parts) != 4 || parts[0] != keyPrefix || parts[1] == "" {
		return ErrKey
	}
	number, err := strconv.ParseUint(parts[2], 10, 32)
	if err != nil || number == 0 {
		return ErrKey
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(parts[3])
	if err != nil || len(secret) != SecretLen {
		return ErrKey
	}
	*k = Key{Namespace: parts[1], Number: uint32(number), Secret: [SecretLen]byte(secret)}
	return nil
}

// String names the key.
func (k Key) String() string { return fmt.Sprintf("key %d of namespace %s", k.Number, k.Namespace) }

// GoString is String, for %#v.
func (k Key) GoString() string { return k.String() }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// TagFlags are the flags of a packet that is tagged by the key, over the payload as well or over the header alone.
func (k *Key) TagFlags(payload bool) Flag {
	flags := FlagTag
	if payload {
		flags |= FlagTagPayload
	}
	if k.Number%2 == 1 {
		flags |= FlagOddKey
	}
	return flags
}

// Keys are those of a namespace.
type Keys struct {
	// Required says that its lambdas serve no packet without a tag.
	Required bool
	Keys     []Key
}

// NamespaceKeys says of a namespace's keys what anybody may know.
type NamespaceKeys struct {
	Required bool             `json:"required"` // its lambdas serve no packet without a tag
	Keys     []KeyDescription `json:"keys"`     // the latest last
}

// KeyDescription is a key without its secret.
type KeyDescription struct {
	Number uint32    `json:"number"`
	Made   time.Time `json:"made"`
}

// NewKey is what POST /system/namespace/NAME/keys answers. Nothing tells the secret later.
type NewKey struct {
	Number uint32 `json:"number"`
	Key    Key    `json:"key"`
}

// Tags is the body of PUT /system/namespace/NAME/tags.
type Tags struct {
	Required *bool `json:"required"` // its lambdas serve no packet without a tag; nil: it does not say, which is refused
}
