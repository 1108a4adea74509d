#!/usr/bin/env python3
"""Stands for the real one."""
