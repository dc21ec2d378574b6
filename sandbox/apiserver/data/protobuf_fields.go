// Print the protobuf fields of all kinds of some API groups, as the Go types of Kubernetes declare them.
//
//	go run protobuf_fields.go v1 apps/v1 ...
//
// The output is one JSON object. "kinds" maps "group/version/Kind" to a message; "messages" maps a message to its
// fields: number -> [name in JSON, type code]. wire/protobuf.py explains the codes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

type field [2]string

type table struct {
	Kinds    map[string]string           `json:"kinds"`
	Messages map[string]map[string]field `json:"messages"`
}

// Types whose JSON form is not that of their message.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "time",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "port",
	reflect.TypeFor[metav1.FieldsV1]():      "json",
	reflect.TypeFor[runtime.RawExtension](): "json",
}

func main() {
	out := table{Kinds: map[string]string{}, Messages: map[string]map[string]field{}}
	out.message(reflect.TypeFor[runtime.TypeMeta]())
	for _, argument := range os.Args[1:] {
		version, err := schema.ParseGroupVersion(argument)
		if err != nil {
			panic(err)
		}
		for kind, goType := range scheme.Scheme.KnownTypes(version) {
			if strings.HasSuffix(kind, "List") || kind == "WatchEvent" {
				continue // no client writes them
			}
			out.Kinds[argument+"/"+kind] = out.message(goType)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}

// message adds the fields of a struct, and of all structs in it; it returns the name of the message.
func (t *table) message(goType reflect.Type) string {
	name := messageName(goType)
	if _, known := t.Messages[name]; known {
		return name
	}
	fields := map[string]field{}
	t.Messages[name] = fields
	for i := range goType.NumField() {
		member := goType.Field(i)
		tag := strings.Split(member.Tag.Get("protobuf"), ",")
		if len(tag) < 3 {
			continue // TypeMeta, which is in the envelope
		}
		key, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if key == "-" {
			panic(fmt.Sprintf("%s.%s is in protobuf but not in JSON", name, member.Name))
		}
		code := t.code(member.Type)
		isPlain := !strings.HasSuffix(code, "[]") && !strings.HasSuffix(code, "{}")
		isOptional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if isPlain && key != "" && (member.Type.Kind() == reflect.Pointer || !isOptional) {
			code += "?"
		}
		fields[tag[1]] = field{key, code}
	}
	return name
}

func (t *table) code(goType reflect.Type) string {
	if code, ok := special[goType]; ok {
		return code
	}
	switch goType.Kind() {
	case reflect.Pointer:
		return t.code(goType.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Struct:
		return t.message(goType)
	case reflect.Map:
		return t.code(goType.Elem()) + "{}"
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if goType.Name() != "" {
			// A slice type with a name, such as ExtraValue, is a message with the repeated field 1.
			return t.list(goType)
		}
		return t.code(goType.Elem()) + "[]"
	}
	panic("no code for " + goType.String())
}

// list adds the message of a slice type with a name; its field has no name in JSON.
func (t *table) list(goType reflect.Type) string {
	name := messageName(goType)
	t.Messages[name] = map[string]field{"1": {"", t.code(goType.Elem()) + "[]"}}
	return name
}

func messageName(goType reflect.Type) string {
	parts := strings.Split(goType.PkgPath(), "/")
	return strings.Join(append(parts[max(0, len(parts)-2):], goType.Name()), ".")
}
