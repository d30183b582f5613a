package ikernel

//go:generate go run ../genheader -constants IKERNEL -o ../../client/python/src/lambdanic/ikernel_wire.py
