"""Simulation of several servers in virtual time: a model of etcd whose faults come from a seed.

Everything random comes from one seed, so a seed plays any failure again. Only tests use it.
"""
