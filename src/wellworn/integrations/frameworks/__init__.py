"""Adapters to agent frameworks, one file each: a framework is imported only where its file is. They translate, no more."""
